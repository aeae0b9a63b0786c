"""Manual settlement of payments, with the state at Stripe checked first."""

from datetime import timedelta

import pytest

from billing.models import Invoice, Payment, StripeDifference, TopUp
from billing.services.payments import manual_settlements
from billing.services.payments.payment_collection import PAYMENTS
from billing.services.payments.stripe import reconciliation, reconciliation_schedule
from billing.services.payments.topups.topup_collection import TOPUPS
from ports import payments
from tenants.services.rls import tenant_scope
from tests.billing.payments.payable_invoices import (
    MIRA,
    NOW,
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
from tests.billing.topups import topup_setup
from tests.fakestripe import things
from tests.fakestripe.server import FakeStripe
from tests.fakestripe.tenants import create_card_holder
from tests.simulation import NOW as WORLD_NOW
from tests.simulation import create_tenant

pytestmark = pytest.mark.django_db
LATER, HOUR = NOW + timedelta(hours=1), timedelta(hours=1)


def create_stuck_payment(fake: FakeStripe, step: str, *ills: str) -> Payment:
    """Return a payment that became stuck at this step."""
    invoice = create_invoice_with_card(fake, how="silent")
    fake.ill = fail_calls(step, *ills, "unauthorized")
    payment, now = process_payment(request_payment(invoice)), NOW
    while payment.status != "stuck":
        assert payment.due_at is not None
        now = payment.due_at
        payment = process_payment(payment, now=now)
    return payment


def invoice_of(payment: Payment) -> Invoice:
    with tenant_scope(payment.tenant_id):
        return Invoice.objects.get(pk=payment.invoice_id)


def settle_as_failed(payment: Payment) -> Payment:
    manual_settlements.settle_as_not_taken(PAYMENTS, payment, why="looked at it", actor=MIRA, now=LATER)
    return process_payment(payment, now=LATER)


@pytest.mark.parametrize(
    ("step", "ills", "left"),
    [
        ("invoices", (), []),
        ("invoices", ("lost",), []),
        ("add_lines", (), []),
        ("finalize", (), []),
        ("finalize", ("lost",), ["void"]),
        ("pay", (), ["void"]),
    ],
)
def test_a_payment_marked_failed_leaves_nothing_payable_at_stripe(
    fake: FakeStripe, step: str, ills: tuple[str, ...], left: list[str]
) -> None:
    payment = settle_as_failed(create_stuck_payment(fake, step, *ills))
    assert (payment.status, payment.code) == ("declined", "marked_failed")
    assert [each["status"] for each in stripe_invoices(fake)] == left
    assert stripe_charges_of(invoice_of(payment)).outcome == "declined"
    again = process_payment(request_payment(reload_invoice(invoice_of(payment)), now=LATER), now=LATER)
    assert again.status == "pending"  # the card's bank dawdles, and is asked about this one alone
    assert len([each for each in stripe_invoices(fake) if each["status"] == "open"]) == 1


def test_an_invoice_paid_at_stripe_is_settled_without_a_second_charge(fake: FakeStripe) -> None:
    payment = create_stuck_payment(fake, "pay")
    (sent,) = stripe_invoices(fake)
    card = next(iter(fake.things.all("payment_method").values()))
    card["how"] = "ok"
    things.pay(fake.things, sent["id"], {"payment_method": card["id"]})
    assert settle_as_failed(payment).status == "succeeded"
    assert (reload_invoice(invoice_of(payment)).status, stripe_amounts_paid(fake)) == ("paid", [200])


def test_manual_settlement_waits_for_the_answer_of_the_bank(fake: FakeStripe) -> None:
    payment = create_stuck_payment(fake, "pay")
    (sent,) = stripe_invoices(fake)
    card = next(iter(fake.things.all("payment_method").values()))
    things.pay(fake.things, sent["id"], {"payment_method": card["id"]})
    waits = settle_as_failed(payment)
    assert (waits.status, "bank has not responded" in waits.last_error) == ("pending", True)
    things.bank_pays(fake.things, sent)
    assert process_payment(payment, now=LATER + HOUR).status == "succeeded"


def test_nothing_is_settled_without_an_answer_from_stripe(fake: FakeStripe) -> None:
    payment = create_stuck_payment(fake, "pay")
    fake.ill = fail_calls("get", "unauthorized")
    waits = settle_as_failed(payment)
    assert (waits.status, waits.reason) == ("stuck", "Stripe does not accept our credentials.")
    assert [each["status"] for each in stripe_invoices(fake)] == ["open"]


def test_an_unexpected_invoice_at_stripe_stays_stuck(fake: FakeStripe) -> None:
    payment = create_stuck_payment(fake, "pay")
    stripe_invoices(fake)[0]["amount_paid"] = 70
    waits = settle_as_failed(payment)
    assert (waits.status, waits.code) == ("stuck", "unforeseen_at_stripe")


def test_an_invoice_void_or_missing_at_stripe_is_settled_as_declined(fake: FakeStripe) -> None:
    payment = create_stuck_payment(fake, "pay")
    stripe_invoices(fake)[0]["status"] = "void"
    assert settle_as_failed(payment).status == "declined"
    other = create_stuck_payment(fake, "pay")
    fake.things.all("invoice").clear()
    assert settle_as_failed(other).status == "declined"


@pytest.mark.deep
def test_reconciliation_reports_a_charge_left_open_at_a_removed_gateway(
    fake: FakeStripe,
) -> None:
    payment = create_stuck_payment(fake, "pay")
    with payments.using_gateway(None):
        manual_settlements.settle_as_not_taken(PAYMENTS, payment, why="gone", actor=MIRA, now=LATER)
    assert [each.status for each in payments_of(invoice_of(payment))] == ["declined"]
    fake.now = now = NOW + timedelta(days=1)
    reconciliation_schedule.schedule_days(now=now)
    for day in reconciliation_schedule.due_days(now=now):
        reconciliation.reconcile_day(day, now=now)
    assert [each.kind for each in StripeDifference.objects.all()] == ["open_there_declined_here"]


def test_a_stuck_top_up_can_be_settled_manually(fake: FakeStripe) -> None:
    owner = create_tenant("Kestrel")
    create_card_holder(fake, owner.tenant.pk)
    fake.ill = fail_calls("pay", "unauthorized")
    waits = topup_setup.process_topup(topup_setup.request_topup(owner, 5000))
    assert (waits.status, waits.stuck_at) == ("stuck", WORLD_NOW)
    later = WORLD_NOW + HOUR
    manual_settlements.settle_as_not_taken(TOPUPS, waits, why="nothing there", actor=owner.actor, now=later)
    done = topup_setup.process_topup(waits, now=later)
    assert (done.status, done.code, topup_setup.wallet_balance(owner)) == ("declined", "marked_failed", 0)
    assert [each["status"] for each in stripe_invoices(fake)] == ["void"]
    with tenant_scope(owner.tenant.pk):
        assert TopUp.objects.get().mark_failed_reason == "nothing there"
    assert topup_setup.process_topup(topup_setup.request_topup(owner, 5000, now=later), now=later).status == "succeeded"


def test_marking_a_payment_failed_sends_nothing_from_the_web_process(fake: FakeStripe) -> None:
    payment = create_stuck_payment(fake, "pay")
    before = sum(fake.calls.values())
    manual_settlements.settle_as_not_taken(PAYMENTS, payment, why="looked", actor=MIRA, now=LATER)
    assert sum(fake.calls.values()) == before
    assert "void" not in stripe_commands_of(invoice_of(payment))
