"""Collection of invoices through Stripe."""

from datetime import timedelta

import pytest
from django.db import DatabaseError, transaction
from django.test import override_settings

from billing.models import Invoice, StripeCharge
from billing.services.invoicing import credit_notes
from billing.services.payments import gateway_requests
from broker.models import Offering
from ports import clock, payments
from ports.payments import ChargeLine, GatewayCharge, GatewayRejected
from tenants.services.rls import tenant_scope
from tests.billing.payments.payable_invoices import (
    MIRA,
    NOW,
    create_final_invoice,
    payments_of,
    process_payment,
    reload_invoice,
    request_payment,
)
from tests.billing.stripe.stripe_customers import (
    create_invoice_with_card,
    fail_calls,
    stripe_amounts_paid,
    stripe_charges_of,
    stripe_commands_of,
    stripe_invoices,
)
from tests.fakestripe.server import Call, FakeStripe
from tests.fakestripe.tenants import create_card_holder

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
STEPS = ["invoices", "add_lines", "finalize", "pay"]
WRITES = ["invoice", "lines", "finalize", "pay"]


def collect_until_settled(invoice: Invoice, *, every: timedelta = timedelta(minutes=5)) -> None:
    """Let workers process a payment repeatedly until it is settled."""
    payment, now = request_payment(invoice), NOW
    for _ in range(9):
        payment = process_payment(payment, now=now)
        if payment.status != "pending":
            return
        assert payment.due_at is not None
        now = max(payment.due_at, now + every)
    raise AssertionError(f"it is still pending: {payment.last_error}")


def test_an_invoice_is_created_finalized_and_paid_at_stripe_in_four_calls(fake: FakeStripe) -> None:
    invoice = create_invoice_with_card(fake)
    assert process_payment(request_payment(invoice)).status == "succeeded"
    assert reload_invoice(invoice).status == "paid"
    assert dict(fake.calls) == dict.fromkeys(STEPS, 1)
    (sent,) = stripe_invoices(fake)
    assert (sent["number"], sent["total"], sent["amount_paid"]) == (str(invoice), 200, 200)
    assert (sent["auto_advance"], sent["currency"]) == (False, "eur")
    assert sent["metadata"]["payment"] == payments_of(invoice)[0].pk
    assert payments_of(invoice)[0].reference == sent["id"] == stripe_charges_of(invoice).stripe_id


def test_stripe_lines_have_our_names_and_amounts(fake: FakeStripe) -> None:
    invoice = create_invoice_with_card(fake)
    process_payment(request_payment(invoice))
    (sent,) = stripe_invoices(fake)
    with tenant_scope(invoice.tenant_id):
        ours = [(Offering.objects.get(pk=line.offering_id).label, line.minor) for line in invoice.lines.order_by("n")]
    assert [(line["description"], line["amount"]) for line in sent["lines"]] == ours


def test_an_amount_settled_by_credit_is_a_negative_line_at_stripe(fake: FakeStripe) -> None:
    invoice = create_invoice_with_card(fake)
    with tenant_scope(invoice.tenant_id):
        credit_notes.issue_credit_note(invoice, wanted={1: 50}, seen=0, why="it was slow", actor=MIRA, now=NOW)
    process_payment(request_payment(reload_invoice(invoice)))
    (sent,) = stripe_invoices(fake)
    assert [line["amount"] for line in sent["lines"]] == [200, -50]
    assert (sent["amount_paid"], reload_invoice(invoice).status) == (150, "paid")


@pytest.mark.deep
@pytest.mark.parametrize("ill", ["429", "lock_timeout", "unreachable", "lost", "500", "500_done", "in_use"])
@pytest.mark.parametrize("step", STEPS)
def test_a_fault_at_any_step_leads_to_one_invoice_paid_once(fake: FakeStripe, step: str, ill: str) -> None:
    invoice = create_invoice_with_card(fake)
    fake.ill = fail_calls(step, ill)
    collect_until_settled(invoice)
    assert reload_invoice(invoice).status == "paid"
    assert stripe_amounts_paid(fake) == [200]
    assert len(stripe_invoices(fake)) == 1
    assert [each.status for each in payments_of(invoice)] == ["succeeded"]


@pytest.mark.parametrize("ill", ["lost", "500_done", "500"])
@pytest.mark.parametrize("step", STEPS)
def test_after_the_idempotency_window_stripe_is_searched_before_a_retry(fake: FakeStripe, step: str, ill: str) -> None:
    invoice = create_invoice_with_card(fake)
    fake.ill = fail_calls(step, ill)
    payment = process_payment(request_payment(invoice))
    fake.now = NOW + 3 * DAY
    assert process_payment(payment, now=NOW + 3 * DAY).status == "succeeded"
    assert (stripe_amounts_paid(fake), len(stripe_invoices(fake))) == ([200], 1)
    assert fake.calls["get"] == 1


def test_a_failure_cached_by_stripe_is_retried_under_another_key(fake: FakeStripe) -> None:
    invoice = create_invoice_with_card(fake)
    fake.ill = fail_calls("invoices", "500")
    collect_until_settled(invoice)
    found = stripe_commands_of(invoice)["invoice"]
    assert (found.attempt, found.sent, fake.calls["invoices"]) == (1, 2, 2)


def test_the_idempotency_key_is_stored_before_the_call(fake: FakeStripe) -> None:
    invoice = create_invoice_with_card(fake)
    seen: dict[str, bool] = {}

    def ill(call: Call) -> str:
        kept = {each.idem: each for each in stripe_commands_of(invoice).values()}
        seen[call.word] = call.idem in kept and kept[call.idem].sent == 1
        return ""

    fake.ill = ill
    process_payment(request_payment(invoice))
    assert seen == dict.fromkeys(STEPS, True)
    assert sorted(stripe_commands_of(invoice)) == sorted(WRITES)


def test_a_retry_sends_the_parameters_of_the_first_call(fake: FakeStripe) -> None:
    invoice = create_invoice_with_card(fake)
    fake.ill = fail_calls("add_lines", "unreachable")
    payment = process_payment(request_payment(invoice))
    Offering.objects.update(label="renamed since")
    payment = process_payment(payment, now=NOW + timedelta(hours=1))
    assert payment.status == "succeeded"
    assert stripe_invoices(fake)[0]["lines"][0]["description"] != "renamed since"


def test_after_a_declined_card_another_card_pays_the_invoice(fake: FakeStripe) -> None:
    invoice = create_invoice_with_card(fake, how="declined")
    first = process_payment(request_payment(invoice))
    assert (first.status, first.code) == ("declined", "insufficient_funds")
    assert first.reason == "Your card has insufficient funds."
    assert (reload_invoice(invoice).status, [each["status"] for each in stripe_invoices(fake)]) == (
        "finalized",
        ["void"],
    )
    create_card_holder(fake, invoice.tenant_id, last4="4444")
    second = process_payment(request_payment(invoice, now=NOW + DAY), now=NOW + DAY)
    assert second.status == "succeeded"
    assert reload_invoice(invoice).status == "paid"
    numbers = [(each["number"], each["status"]) for each in stripe_invoices(fake)]
    assert numbers == [(str(invoice), "void"), (f"{invoice}-2", "paid")]


def test_a_payment_that_requires_authentication_is_declined(fake: FakeStripe) -> None:
    invoice = create_invoice_with_card(fake, how="action")
    payment = process_payment(request_payment(invoice))
    assert (payment.status, payment.code) == ("declined", "invoice_payment_intent_requires_action")
    assert [each["status"] for each in stripe_invoices(fake)] == ["void"]


def test_a_card_detached_at_stripe_declines_the_payment(fake: FakeStripe) -> None:
    invoice = create_invoice_with_card(fake)
    for method in fake.things.all("payment_method").values():
        method["customer"] = None
    payment = process_payment(request_payment(invoice))
    assert (payment.status, payment.code) == ("declined", "resource_missing")
    assert [each["status"] for each in stripe_invoices(fake)] == ["void"]


def test_a_payment_without_a_card_is_declined_without_calling_stripe(fake: FakeStripe) -> None:
    invoice = create_final_invoice()
    payment = process_payment(request_payment(invoice))
    assert (payment.status, payment.code, sum(fake.calls.values())) == ("declined", "no_card", 0)
    assert "Add one" in payment.reason
    create_card_holder(fake, invoice.tenant_id)
    assert process_payment(request_payment(invoice, now=NOW + DAY), now=NOW + DAY).status == "succeeded"


def test_a_payment_stays_pending_until_the_bank_answers(fake: FakeStripe) -> None:
    invoice = create_invoice_with_card(fake, how="slow")
    payment = process_payment(request_payment(invoice))
    assert (payment.status, payment.last_error) == ("pending", "the bank has not responded to Stripe yet")
    later = payment.due_at
    assert later is not None
    assert process_payment(payment, now=later).status == "succeeded"
    assert fake.calls["pay"] == 1


def test_an_invoice_with_a_different_total_at_stripe_is_never_finalized(
    fake: FakeStripe, monkeypatch: pytest.MonkeyPatch
) -> None:
    invoice = create_invoice_with_card(fake)
    fake.total_off = 1
    payment = process_payment(request_payment(invoice))
    assert (payment.status, payment.code) == ("stuck", "total_differs")
    assert "201 and not to 200" in payment.reason
    assert (stripe_invoices(fake), fake.calls["finalize"], fake.calls["pay"]) == ([], 0, 0)
    fake.total_off = 0
    assert process_payment(request_payment(invoice, now=NOW + DAY), now=NOW + DAY).status == "succeeded"
    assert stripe_amounts_paid(fake) == [200]


def test_an_invoice_paid_from_a_stripe_balance_is_stuck(fake: FakeStripe) -> None:
    """Stripe marks an invoice as paid from its own balance."""
    invoice = create_invoice_with_card(fake)
    fake.ill = fail_calls("pay", "unreachable")
    payment = process_payment(request_payment(invoice))
    stripe_invoices(fake)[0].update(status="paid", amount_paid=0)
    payment = process_payment(payment, now=NOW + timedelta(hours=1))
    assert payment.status == "stuck"
    assert reload_invoice(invoice).status == "finalized"


def test_invalid_credentials_make_a_payment_stuck_and_are_never_shown(fake: FakeStripe) -> None:
    invoice = create_invoice_with_card(fake)
    with override_settings(STRIPE_SECRET_KEY="sk_test_old"):
        payment = process_payment(request_payment(invoice))
    assert (payment.status, payment.code) == ("stuck", "bad_credentials")
    assert "sk_test" not in payment.reason
    assert process_payment(request_payment(invoice, now=NOW + DAY), now=NOW + DAY).status == "succeeded"


def test_without_a_stripe_key_a_payment_is_stuck(fake: FakeStripe) -> None:
    invoice = create_invoice_with_card(fake)
    with override_settings(STRIPE_SECRET_KEY=""):
        payment = process_payment(request_payment(invoice))
    assert (payment.status, payment.code) == ("stuck", "no_credentials")


def test_requests_to_stripe_are_rate_limited(fake: FakeStripe) -> None:
    with override_settings(STRIPE_CALLS_PER_S=2), clock.frozen_at(NOW) as hands:
        invoice = create_invoice_with_card(fake)
        payment = process_payment(request_payment(invoice))
        assert (payment.status, sum(fake.calls.values())) == ("pending", 3)
        assert "rate limit of requests to Stripe" in payment.last_error
        hands.at = NOW + timedelta(seconds=30)
        assert process_payment(payment, now=NOW + timedelta(seconds=30)).status == "succeeded"


def test_too_many_lines_are_summed_per_offering(fake: FakeStripe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway_requests, "MAX_PARTS", 1)
    invoice = create_invoice_with_card(fake)
    payment = request_payment(invoice)
    lines = [ChargeLine("b", 5), ChargeLine("a", 1, 1, "VAT", "19"), ChargeLine("a", 2, 3, "VAT", "19")]
    assert gateway_requests._sum_by_offering(lines) == [
        ChargeLine("a", 3, 4, "VAT", "19"),
        ChargeLine("b", 5),
    ]
    assert len(gateway_requests.charge_request(payment).parts) == 1
    monkeypatch.setattr(gateway_requests, "MAX_PARTS", 0)
    assert gateway_requests.charge_request(payment).parts == ()
    process_payment(payment)
    assert stripe_invoices(fake)[0]["lines"][0]["description"] == f"Invoice {invoice}"


def test_a_stripe_line_has_the_tax_we_computed(fake: FakeStripe) -> None:
    invoice = create_invoice_with_card(fake)
    lines = (ChargeLine("Slices", 100, 19, "VAT", "19.00"), ChargeLine("Paid from your balance", -20))
    charge = GatewayCharge("pay_taxed", 99, "EUR", invoice.tenant_id, "Invoice 1", parts=lines)
    gateway = payments.gateway()
    assert gateway is not None
    gateway.charge(charge, now=NOW)
    (sent,) = stripe_invoices(fake)
    assert [line["taxes"] for line in sent["lines"]] == [[{"amount": 19, "taxable_amount": 100}], []]
    assert sent["amount_paid"] == 99


def test_tax_without_a_rate_is_a_separate_line(fake: FakeStripe) -> None:
    invoice = create_invoice_with_card(fake)
    charge = GatewayCharge("pay_t", 7, "EUR", invoice.tenant_id, "Invoice 1", parts=(ChargeLine("Slices", 5, 2),))
    gateway = payments.gateway()
    assert gateway is not None
    gateway.charge(charge, now=NOW)
    assert [line["amount"] for line in stripe_invoices(fake)[0]["lines"]] == [5, 2]


def test_lines_that_do_not_add_up_to_the_charge_are_refused(fake: FakeStripe) -> None:
    invoice = create_invoice_with_card(fake)
    charge = GatewayCharge("pay_odd", 99, "EUR", invoice.tenant_id, "Invoice 1", parts=(ChargeLine("Slices", 98),))
    gateway = payments.gateway()
    assert gateway is not None
    with pytest.raises(GatewayRejected, match="differs from the amount to charge"):
        gateway.charge(charge, now=NOW)
    assert fake.calls["pay"] == 0


def test_a_settled_stripe_charge_cannot_change(fake: FakeStripe) -> None:
    invoice = create_invoice_with_card(fake)
    process_payment(request_payment(invoice))
    with (
        tenant_scope(invoice.tenant_id),
        pytest.raises(DatabaseError, match="stays what it is"),
        transaction.atomic(),
    ):
        StripeCharge.objects.update(outcome="declined")


def test_a_taxed_line_is_sent_with_its_rate(fake: FakeStripe) -> None:
    invoice = create_invoice_with_card(fake)
    with tenant_scope(invoice.tenant_id):
        line = invoice.lines.get()
    assert gateway_requests._request_part("Slices", line.minor, 0, None) == ChargeLine("Slices", line.minor, 0)
    assert gateway_requests._request_part("Slices", 200, 38, 1900) == ChargeLine("Slices", 200, 38, "VAT", "19.00")


def test_an_amount_below_stripes_minimum_is_declined_and_never_finalized(fake: FakeStripe) -> None:
    """Finalized, Stripe would call it paid, and add it to the next invoice."""
    invoice = create_invoice_with_card(fake)
    fake.things.least = 500
    payment = process_payment(request_payment(invoice))
    assert (payment.status, payment.code) == ("declined", "amount_too_small")
    assert (reload_invoice(invoice).status, stripe_invoices(fake), fake.calls["finalize"]) == ("finalized", [], 0)


@pytest.mark.parametrize("balance", [700, -50])
def test_a_customer_balance_at_stripe_makes_the_payment_stuck(fake: FakeStripe, balance: int) -> None:
    invoice = create_invoice_with_card(fake)
    (customer,) = fake.things.all("customer").values()
    customer["balance"] = balance
    payment = process_payment(request_payment(invoice))
    assert (payment.status, payment.code) == ("stuck", "balance_at_stripe")
    assert (stripe_invoices(fake), fake.calls["pay"]) == ([], 0)
    customer["balance"] = 0
    assert process_payment(request_payment(invoice, now=NOW + DAY), now=NOW + DAY).status == "succeeded"
    assert stripe_amounts_paid(fake) == [200]


@pytest.mark.parametrize("paid", [True, False])
def test_a_payment_at_stripe_before_its_decline_is_recorded_counts(fake: FakeStripe, paid: bool) -> None:
    invoice = create_invoice_with_card(fake, how="declined")
    fake.ill = fail_calls("void", "unreachable")
    payment = process_payment(request_payment(invoice))
    assert payment.status == "pending"
    stripe_invoices(fake)[0].update(status="paid" if paid else "uncollectible", amount_paid=200 if paid else 0)
    payment = process_payment(payment, now=NOW + timedelta(hours=1))
    assert (payment.status, reload_invoice(invoice).status) == (
        ("succeeded", "paid") if paid else ("declined", "finalized")
    )


def test_an_unpaid_invoice_that_cannot_be_voided_is_stuck(fake: FakeStripe) -> None:
    invoice = create_invoice_with_card(fake, how="declined")
    fake.ill = fail_calls("void", "unreachable")
    payment = process_payment(request_payment(invoice))
    stripe_invoices(fake)[0]["status"] = "draft"
    assert process_payment(payment, now=NOW + timedelta(hours=1)).status == "stuck"


@pytest.mark.parametrize("currency", ["IQD", "LYD", "XXX"])
def test_an_unsupported_currency_is_refused_by_name_and_stores_no_charge(fake: FakeStripe, currency: str) -> None:
    invoice = create_invoice_with_card(fake)
    gateway = payments.gateway()
    assert gateway is not None
    with pytest.raises(GatewayRejected, match=f"does not collect {currency}"):
        gateway.charge(GatewayCharge("pay_x", 100, currency, invoice.tenant_id, "Invoice 1"), now=NOW)
    with tenant_scope(invoice.tenant_id):
        assert not StripeCharge.objects.exists()
    assert not fake.calls


def test_an_amount_below_stripes_smallest_unit_is_refused(fake: FakeStripe) -> None:
    invoice = create_invoice_with_card(fake)
    gateway = payments.gateway()
    assert gateway is not None
    with pytest.raises(GatewayRejected, match="below Stripe's minimum"):
        gateway.charge(GatewayCharge("pay_x", 9, "KWD", invoice.tenant_id, "Invoice 1"), now=NOW)


def test_amounts_are_charged_in_stripes_units(fake: FakeStripe) -> None:
    invoice = create_invoice_with_card(fake)
    gateway = payments.gateway()
    assert gateway is not None
    for currency, minor in (("JPY", 500), ("ISK", 500), ("KWD", 5129), ("EUR", 1234)):
        gateway.charge(GatewayCharge(f"pay_{currency}", minor, currency, invoice.tenant_id, "Invoice"), now=NOW)
    assert stripe_amounts_paid(fake) == [500, 50000, 5120, 1234]
