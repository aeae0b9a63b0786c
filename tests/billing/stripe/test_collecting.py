"""An invoice of ours becomes one of Stripe's, of our own amounts, and is paid once whatever happens on the way."""

from datetime import timedelta

import pytest
from django.db import DatabaseError, transaction
from django.test import override_settings

from billing.models import Invoice, StripeCharge
from billing.services import crediting
from billing.services.payments import asking
from broker.models import Offering
from ports import clock, payments
from ports.payments import Charge, ChargePart, Rejected
from tenants.services.walls import as_tenant
from tests.billing.payments.bills import MIRA, NOW, bill, collect, fresh, pay, tried
from tests.billing.stripe.purses import at, billed, book, commands, taken, there
from tests.fakestripe.server import Call, FakeStripe
from tests.fakestripe.tenants import holder

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
STEPS = ["invoices", "add_lines", "finalize", "pay"]
WRITES = ["invoice", "lines", "finalize", "pay"]


def until_settled(invoice: Invoice, *, every: timedelta = timedelta(minutes=5)) -> None:
    """Let workers look again and again, a while apart."""
    payment, now = pay(invoice), NOW
    for _ in range(9):
        payment = collect(payment, now=now)
        if payment.status != "pending":
            return
        assert payment.due_at is not None
        now = max(payment.due_at, now + every)
    raise AssertionError(f"it is still pending: {payment.trouble}")


def test_an_invoice_is_made_filled_finalized_and_paid_there_in_four_calls(fake: FakeStripe) -> None:
    invoice = billed(fake)
    assert collect(pay(invoice)).status == "succeeded"
    assert fresh(invoice).status == "paid"
    assert dict(fake.calls) == dict.fromkeys(STEPS, 1)
    (sent,) = there(fake)
    assert (sent["number"], sent["total"], sent["amount_paid"]) == (str(invoice), 200, 200)
    assert (sent["auto_advance"], sent["currency"]) == (False, "eur")
    assert sent["metadata"]["payment"] == tried(invoice)[0].pk
    assert tried(invoice)[0].reference == sent["id"] == book(invoice).stripe_id


def test_its_lines_are_ours_by_name_and_amount(fake: FakeStripe) -> None:
    invoice = billed(fake)
    collect(pay(invoice))
    (sent,) = there(fake)
    with as_tenant(invoice.tenant_id):
        ours = [
            (Offering.objects.get(pk=line.offering_id).label, line.minor)
            for line in invoice.lines.order_by("n")
        ]
    assert [(line["description"], line["amount"]) for line in sent["lines"]] == ours


def test_what_was_settled_otherwise_is_a_line_below_nothing(fake: FakeStripe) -> None:
    invoice = billed(fake)
    with as_tenant(invoice.tenant_id):
        crediting.credit(invoice, wanted={1: 50}, seen=0, why="it was slow", actor=MIRA, now=NOW)
    collect(pay(fresh(invoice)))
    (sent,) = there(fake)
    assert [line["amount"] for line in sent["lines"]] == [200, -50]
    assert (sent["amount_paid"], fresh(invoice).status) == (150, "paid")


@pytest.mark.parametrize("ill", ["429", "lock_timeout", "unreachable", "lost", "500", "500_done", "in_use"])
@pytest.mark.parametrize("step", STEPS)
def test_whatever_befalls_a_step_it_is_one_invoice_paid_once(fake: FakeStripe, step: str, ill: str) -> None:
    invoice = billed(fake)
    fake.ill = at(step, ill)
    until_settled(invoice)
    assert fresh(invoice).status == "paid"
    assert taken(fake) == [200]
    assert len(there(fake)) == 1
    assert [each.status for each in tried(invoice)] == ["succeeded"]


@pytest.mark.parametrize("ill", ["lost", "500_done", "500"])
@pytest.mark.parametrize("step", STEPS)
def test_a_day_later_it_looks_before_it_asks_again(fake: FakeStripe, step: str, ill: str) -> None:
    invoice = billed(fake)
    fake.ill = at(step, ill)
    payment = collect(pay(invoice))
    fake.now = NOW + 3 * DAY
    assert collect(payment, now=NOW + 3 * DAY).status == "succeeded"
    assert (taken(fake), len(there(fake))) == ([200], 1)
    assert fake.calls["get"] == 1


def test_a_failure_that_stripe_remembers_is_not_asked_about_twice(fake: FakeStripe) -> None:
    invoice = billed(fake)
    fake.ill = at("invoices", "500")
    until_settled(invoice)
    told = commands(invoice)["invoice"]
    assert (told.attempt, told.sent, fake.calls["invoices"]) == (1, 2, 2)


def test_its_key_stands_in_our_books_before_the_call(fake: FakeStripe) -> None:
    invoice = billed(fake)
    seen: dict[str, bool] = {}

    def ill(call: Call) -> str:
        kept = {each.idem: each for each in commands(invoice).values()}
        seen[call.word] = call.idem in kept and kept[call.idem].sent == 1
        return ""

    fake.ill = ill
    collect(pay(invoice))
    assert seen == dict.fromkeys(STEPS, True)
    assert sorted(commands(invoice)) == sorted(WRITES)


def test_parameters_stay_as_they_were_first_sent(fake: FakeStripe) -> None:
    invoice = billed(fake)
    fake.ill = at("add_lines", "unreachable")
    payment = collect(pay(invoice))
    Offering.objects.update(label="renamed since")
    payment = collect(payment, now=NOW + timedelta(hours=1))
    assert payment.status == "succeeded"
    assert there(fake)[0]["lines"][0]["description"] != "renamed since"


def test_a_refused_card_leaves_the_invoice_payable_and_another_card_pays_it(fake: FakeStripe) -> None:
    invoice = billed(fake, how="declined")
    first = collect(pay(invoice))
    assert (first.status, first.code) == ("declined", "insufficient_funds")
    assert first.reason == "Your card has insufficient funds."
    assert (fresh(invoice).status, [each["status"] for each in there(fake)]) == ("finalized", ["void"])
    holder(fake, invoice.tenant_id, last4="4444")
    second = collect(pay(invoice, now=NOW + DAY), now=NOW + DAY)
    assert second.status == "succeeded"
    assert fresh(invoice).status == "paid"
    numbers = [(each["number"], each["status"]) for each in there(fake)]
    assert numbers == [(str(invoice), "void"), (f"{invoice}-2", "paid")]


def test_a_bank_that_wants_the_cardholder_is_a_refusal(fake: FakeStripe) -> None:
    invoice = billed(fake, how="action")
    payment = collect(pay(invoice))
    assert (payment.status, payment.code) == ("declined", "invoice_payment_intent_requires_action")
    assert [each["status"] for each in there(fake)] == ["void"]


def test_a_card_that_was_taken_off_there_is_a_refusal(fake: FakeStripe) -> None:
    invoice = billed(fake)
    for method in fake.things.all("payment_method").values():
        method["customer"] = None
    payment = collect(pay(invoice))
    assert (payment.status, payment.code) == ("declined", "resource_missing")
    assert [each["status"] for each in there(fake)] == ["void"]


def test_without_a_card_nothing_is_asked_and_a_card_pays_the_next_time(fake: FakeStripe) -> None:
    invoice = bill()
    payment = collect(pay(invoice))
    assert (payment.status, payment.code, sum(fake.calls.values())) == ("declined", "no_card", 0)
    assert "Add one" in payment.reason
    holder(fake, invoice.tenant_id)
    assert collect(pay(invoice, now=NOW + DAY), now=NOW + DAY).status == "succeeded"


def test_a_bank_that_takes_its_time_is_looked_at_until_it_has_answered(fake: FakeStripe) -> None:
    invoice = billed(fake, how="slow")
    payment = collect(pay(invoice))
    assert (payment.status, payment.trouble) == ("pending", "the bank has not answered Stripe yet")
    later = payment.due_at
    assert later is not None
    assert collect(payment, now=later).status == "succeeded"
    assert fake.calls["pay"] == 1


def test_a_total_that_stripe_adds_up_otherwise_is_never_finalized(
    fake: FakeStripe, monkeypatch: pytest.MonkeyPatch
) -> None:
    invoice = billed(fake)
    fake.total_off = 1
    payment = collect(pay(invoice))
    assert (payment.status, payment.code) == ("stuck", "total_differs")
    assert "201 and not to 200" in payment.reason
    assert (there(fake), fake.calls["finalize"], fake.calls["pay"]) == ([], 0, 0)
    fake.total_off = 0
    assert collect(pay(invoice, now=NOW + DAY), now=NOW + DAY).status == "succeeded"
    assert taken(fake) == [200]


def test_a_balance_at_stripe_that_nobody_knows_of_is_not_taken_for_money(fake: FakeStripe) -> None:
    """Stripe marks an invoice as paid where it drew from a balance of its own, and no card was charged."""
    invoice = billed(fake)
    fake.ill = at("pay", "unreachable")
    payment = collect(pay(invoice))
    there(fake)[0].update(status="paid", amount_paid=0)
    payment = collect(payment, now=NOW + timedelta(hours=1))
    assert payment.status == "stuck"
    assert fresh(invoice).status == "finalized"


def test_credentials_that_no_longer_hold_wait_for_a_person_and_are_shown_nowhere(fake: FakeStripe) -> None:
    invoice = billed(fake)
    with override_settings(STRIPE_SECRET_KEY="sk_test_old"):
        payment = collect(pay(invoice))
    assert (payment.status, payment.code) == ("stuck", "bad_credentials")
    assert "sk_test" not in payment.reason
    assert collect(pay(invoice, now=NOW + DAY), now=NOW + DAY).status == "succeeded"


def test_without_a_key_nothing_is_sent(fake: FakeStripe) -> None:
    invoice = billed(fake)
    with override_settings(STRIPE_SECRET_KEY=""):
        payment = collect(pay(invoice))
    assert (payment.status, payment.code) == ("stuck", "no_credentials")


def test_it_is_asked_no_faster_than_it_may_be(fake: FakeStripe) -> None:
    with override_settings(STRIPE_CALLS_PER_S=2), clock.standing_at(NOW) as hands:
        invoice = billed(fake)
        payment = collect(pay(invoice))
        assert (payment.status, sum(fake.calls.values())) == ("pending", 3)
        assert "waits its turn" in payment.trouble
        hands.at = NOW + timedelta(seconds=30)
        assert collect(payment, now=NOW + timedelta(seconds=30)).status == "succeeded"


def test_many_lines_are_one_of_each_offering(fake: FakeStripe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "MOST_PARTS", 1)
    invoice = billed(fake)
    payment = pay(invoice)
    lines = [ChargePart("b", 5), ChargePart("a", 1, 1, "VAT", "19"), ChargePart("a", 2, 3, "VAT", "19")]
    assert asking._together(lines) == [ChargePart("a", 3, 4, "VAT", "19"), ChargePart("b", 5)]
    assert len(asking.charge_of(payment).parts) == 1
    monkeypatch.setattr(asking, "MOST_PARTS", 0)
    assert asking.charge_of(payment).parts == ()
    collect(payment)
    assert there(fake)[0]["lines"][0]["description"] == f"Invoice {invoice}"


def test_a_line_carries_the_tax_that_we_worked_out(fake: FakeStripe) -> None:
    invoice = billed(fake)
    lines = (ChargePart("Slices", 100, 19, "VAT", "19.00"), ChargePart("Paid from your balance", -20))
    charge = Charge("pay_taxed", 99, "EUR", invoice.tenant_id, "Invoice 1", parts=lines)
    gateway = payments.gateway()
    assert gateway is not None
    gateway.charge(charge, now=NOW)
    (sent,) = there(fake)
    assert [line["taxes"] for line in sent["lines"]] == [[{"amount": 19, "taxable_amount": 100}], []]
    assert sent["amount_paid"] == 99


def test_tax_without_a_rate_is_a_line_of_its_own(fake: FakeStripe) -> None:
    invoice = billed(fake)
    charge = Charge("pay_t", 7, "EUR", invoice.tenant_id, "Invoice 1", parts=(ChargePart("Slices", 5, 2),))
    gateway = payments.gateway()
    assert gateway is not None
    gateway.charge(charge, now=NOW)
    assert [line["amount"] for line in there(fake)[0]["lines"]] == [5, 2]


def test_lines_that_do_not_add_up_are_not_sent(fake: FakeStripe) -> None:
    invoice = billed(fake)
    charge = Charge("pay_odd", 99, "EUR", invoice.tenant_id, "Invoice 1", parts=(ChargePart("Slices", 98),))
    gateway = payments.gateway()
    assert gateway is not None
    with pytest.raises(Rejected, match="do not add up"):
        gateway.charge(charge, now=NOW)
    assert fake.calls["pay"] == 0


def test_a_settled_charge_of_ours_never_changes(fake: FakeStripe) -> None:
    invoice = billed(fake)
    collect(pay(invoice))
    with (
        as_tenant(invoice.tenant_id),
        pytest.raises(DatabaseError, match="stays what it is"),
        transaction.atomic(),
    ):
        StripeCharge.objects.update(outcome="declined")


def test_an_invoice_with_tax_sends_each_line_with_its_rate(fake: FakeStripe) -> None:
    invoice = billed(fake)
    with as_tenant(invoice.tenant_id):
        line = invoice.lines.get()
    assert asking._part("Slices", line.minor, 0, None) == ChargePart("Slices", line.minor, 0)
    assert asking._part("Slices", 200, 38, 1900) == ChargePart("Slices", 200, 38, "VAT", "19.00")


def test_what_is_too_small_for_stripe_is_never_finalized_and_stays_due(fake: FakeStripe) -> None:
    """Finalized, Stripe would call it paid, and add it to the next invoice."""
    invoice = billed(fake)
    fake.things.least = 500
    payment = collect(pay(invoice))
    assert (payment.status, payment.code) == ("declined", "amount_too_small")
    assert (fresh(invoice).status, there(fake), fake.calls["finalize"]) == ("finalized", [], 0)


@pytest.mark.parametrize("balance", [700, -50])
def test_a_balance_that_stripe_keeps_for_a_tenant_is_never_charged_with_it(
    fake: FakeStripe, balance: int
) -> None:
    invoice = billed(fake)
    (customer,) = fake.things.all("customer").values()
    customer["balance"] = balance
    payment = collect(pay(invoice))
    assert (payment.status, payment.code) == ("stuck", "balance_at_stripe")
    assert (there(fake), fake.calls["pay"]) == ([], 0)
    customer["balance"] = 0
    assert collect(pay(invoice, now=NOW + DAY), now=NOW + DAY).status == "succeeded"
    assert taken(fake) == [200]


@pytest.mark.parametrize("paid", [True, False])
def test_who_pays_at_stripe_before_the_refusal_is_written_has_paid(fake: FakeStripe, paid: bool) -> None:
    invoice = billed(fake, how="declined")
    fake.ill = at("void", "unreachable")
    payment = collect(pay(invoice))
    assert payment.status == "pending"
    there(fake)[0].update(status="paid" if paid else "uncollectible", amount_paid=200 if paid else 0)
    payment = collect(payment, now=NOW + timedelta(hours=1))
    assert (payment.status, fresh(invoice).status) == (
        ("succeeded", "paid") if paid else ("declined", "finalized")
    )


def test_what_cannot_be_voided_and_was_not_paid_waits_for_a_person(fake: FakeStripe) -> None:
    invoice = billed(fake, how="declined")
    fake.ill = at("void", "unreachable")
    payment = collect(pay(invoice))
    there(fake)[0]["status"] = "draft"
    assert collect(payment, now=NOW + timedelta(hours=1)).status == "stuck"


@pytest.mark.parametrize("currency", ["IQD", "LYD", "XXX"])
def test_a_currency_that_stripe_does_not_know_is_refused_by_name_and_nothing_is_booked(
    fake: FakeStripe, currency: str
) -> None:
    invoice = billed(fake)
    gateway = payments.gateway()
    assert gateway is not None
    with pytest.raises(Rejected, match=f"does not collect {currency}"):
        gateway.charge(Charge("pay_x", 100, currency, invoice.tenant_id, "Invoice 1"), now=NOW)
    with as_tenant(invoice.tenant_id):
        assert not StripeCharge.objects.exists()
    assert not fake.calls


def test_less_than_the_smallest_coin_of_stripes_is_refused(fake: FakeStripe) -> None:
    invoice = billed(fake)
    gateway = payments.gateway()
    assert gateway is not None
    with pytest.raises(Rejected, match="smallest amount"):
        gateway.charge(Charge("pay_x", 9, "KWD", invoice.tenant_id, "Invoice 1"), now=NOW)


def test_every_currency_is_charged_as_stripe_counts_it(fake: FakeStripe) -> None:
    invoice = billed(fake)
    gateway = payments.gateway()
    assert gateway is not None
    for currency, minor in (("JPY", 500), ("ISK", 500), ("KWD", 5129), ("EUR", 1234)):
        gateway.charge(Charge(f"pay_{currency}", minor, currency, invoice.tenant_id, "Invoice"), now=NOW)
    assert taken(fake) == [500, 50000, 5120, 1234]
