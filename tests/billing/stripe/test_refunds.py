"""Refunds through Stripe, and refunds returned by the bank."""

from datetime import timedelta
from typing import Any
from unittest import mock

import pytest

from billing.models import Invoice, PaymentRefund, Refund, StripeDifference
from billing.services.payments.refunds import refund_creation, refund_submission
from billing.services.payments.stripe import (
    reconciliation,
    reconciliation_schedule,
    webhook_events,
    webhook_inbox,
)
from tenants.services.rls import tenant_scope
from tests.billing.credit_notes.issued_notes import issue_note
from tests.billing.payments.payable_invoices import MIRA, NOW, process_payment, request_payment
from tests.billing.refunds.refund_setup import balance_of, payment_of, process_refund, reload_refund, request_refund
from tests.billing.stripe.stripe_customers import SECRETS, create_invoice_with_card, fail_calls
from tests.fakestripe.server import FakeStripe
from tests.fakestripe.webhook_delivery import webhook_of

pytestmark = pytest.mark.django_db
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def create_credited_invoice(fake: FakeStripe) -> Invoice:
    """Return a paid invoice of 2.00, credited in full."""
    fake.now = NOW
    invoice = create_invoice_with_card(fake)
    process_payment(request_payment(invoice))
    issue_note(invoice)
    return invoice


def stripe_refunds(fake: FakeStripe) -> list[dict[str, Any]]:
    return list(fake.things.all("refund").values())


def process_until_settled(fake: FakeStripe, refund: Refund) -> Refund:
    for _ in range(9):
        if refund.due_at is None:
            break
        fake.now = refund.due_at
        refund = process_refund(refund, now=refund.due_at)
    return refund


def reconcile(fake: FakeStripe, now: Any) -> list[str]:
    fake.now = now
    reconciliation_schedule.schedule_days(now=now)
    for day in reconciliation_schedule.due_days(now=now):
        reconciliation.reconcile_day(day, now=now)
    return list(StripeDifference.objects.values_list("kind", flat=True))


def test_a_refund_is_made_at_stripe_booked_and_reconciled(fake: FakeStripe) -> None:
    invoice = create_credited_invoice(fake)
    done = process_refund(request_refund(invoice, 150))
    (made,) = stripe_refunds(fake)
    assert (done.status, done.reference, balance_of(invoice)) == ("succeeded", made["id"], 50)
    assert (made["amount"], made["metadata"]["refund"]) == (150, done.pk)
    assert reconcile(fake, NOW + DAY) == []
    fake.things.all("refund").clear()
    with tenant_scope(invoice.tenant_id):
        PaymentRefund.objects.update(status="canceled")
    assert reconcile(fake, NOW + 2 * DAY) == ["refund_not_there"]


@pytest.mark.parametrize("ill", ["429", "500", "500_done", "lost", "lock_timeout", "unreachable", "in_use"])
def test_a_fault_of_the_refund_call_leads_to_one_refund(fake: FakeStripe, ill: str) -> None:
    invoice = create_credited_invoice(fake)
    fake.ill = fail_calls("refunds", ill, ill)
    done = process_until_settled(fake, request_refund(invoice, 150))
    assert (done.status, [each["amount"] for each in stripe_refunds(fake)], balance_of(invoice)) == (
        "succeeded",
        [150],
        50,
    )


def test_a_refund_with_a_lost_answer_is_found_three_days_later(fake: FakeStripe) -> None:
    invoice = create_credited_invoice(fake)
    fake.ill = fail_calls("refunds", "lost")
    waits = process_refund(request_refund(invoice, 150))
    fake.now = NOW + 3 * DAY
    assert process_refund(waits, now=NOW + 3 * DAY).status == "succeeded"
    assert len(stripe_refunds(fake)) == 1


def test_a_refund_above_the_remainder_at_stripe_is_declined_and_credited(fake: FakeStripe) -> None:
    invoice = create_credited_invoice(fake)
    charge = next(iter(fake.things.all("charge").values()))
    charge["amount_refunded"] = 100  # in the dashboard, and we have not heard of it
    done = process_refund(request_refund(invoice, 150))
    assert (done.status, done.code, balance_of(invoice)) == ("declined", "amount_too_large", 200)
    assert stripe_refunds(fake) == []


@pytest.mark.parametrize(
    ("first", "word", "status", "left"),
    [
        ("pending", "succeeded", "succeeded", 50),
        ("requires_action", "succeeded", "succeeded", 50),
        ("pending", "failed", "declined", 200),
        ("requires_action", "canceled", "declined", 200),
    ],
)
def test_a_refund_stays_pending_until_the_bank_answers(
    fake: FakeStripe, first: str, word: str, status: str, left: int
) -> None:
    invoice = create_credited_invoice(fake)
    fake.things.refund_as = first
    waits = process_refund(request_refund(invoice, 150))
    who = {"pending": "the bank has not responded", "requires_action": "waits for the payer"}[first]
    assert (waits.status, who in waits.last_error) == ("pending", True)
    (made,) = stripe_refunds(fake)
    made["status"] = word
    soon = NOW + timedelta(minutes=1)
    event = fake.things.tell("refund.updated", made)
    webhook_inbox.receive_event(*webhook_of(event, SECRETS[0], soon), now=soon)
    webhook_events.process_event(event["id"], now=soon)
    assert refund_submission.REFUND_TRANSACTIONS.due(now=soon) == [("billing.refund", waits.pk, waits.tenant_id)]
    done = process_refund(waits, now=soon)
    assert (done.status, balance_of(invoice), len(stripe_refunds(fake))) == (status, left, 1)


def test_a_refund_returned_by_the_bank_restores_the_balance_once(fake: FakeStripe) -> None:
    invoice = create_credited_invoice(fake)
    done = process_refund(request_refund(invoice, 150))
    (made,) = stripe_refunds(fake)
    made["status"] = "failed"
    fake.things.get("charge", made["charge"])["amount_refunded"] = 0
    for _ in range(3):
        event = fake.things.tell("refund.failed", made)
        webhook_inbox.receive_event(*webhook_of(event, SECRETS[0], NOW), now=NOW)
        webhook_events.process_event(event["id"], now=NOW)
    assert (reload_refund(done).returned_at, balance_of(invoice)) == (NOW, 200)
    assert reconcile(fake, NOW + DAY) == []
    assert process_refund(request_refund(invoice, 150)).status == "succeeded"


def test_an_unknown_refund_status_is_left_to_an_operator(fake: FakeStripe) -> None:
    invoice = create_credited_invoice(fake)
    fake.things.refund_as = "teleported"
    stuck = process_refund(request_refund(invoice, 150))
    assert (stuck.status, stuck.code, "teleported" in stuck.reason) == ("stuck", "unforeseen", True)


def test_invalid_credentials_make_a_refund_stuck(fake: FakeStripe) -> None:
    invoice = create_credited_invoice(fake)
    fake.ill = fail_calls("get", "unauthorized")
    stuck = process_refund(request_refund(invoice, 150))
    assert (stuck.status, stuck.code, balance_of(invoice)) == ("stuck", "bad_credentials", 50)


def test_a_refund_of_a_payment_without_a_card_is_left_to_an_operator(fake: FakeStripe) -> None:
    invoice = create_credited_invoice(fake)
    next(iter(fake.things.all("payment_intent").values()))["status"] = "canceled"
    assert process_refund(request_refund(invoice, 150)).code == "no_card_payment"
    assert payment_of(invoice).status == "succeeded"


@pytest.mark.parametrize("code", ["balance_insufficient", "resource_missing", "testmode_charges_only"])
def test_a_repairable_refund_is_stuck_and_can_be_retried_the_same_day(fake: FakeStripe, code: str) -> None:
    invoice = create_credited_invoice(fake)
    fake.things.refund_refused = code
    stuck = process_refund(request_refund(invoice, 150))
    assert (stuck.status, stuck.code, balance_of(invoice)) == ("stuck", code, 50)
    fake.things.refund_refused = ""
    soon = NOW + HOUR
    refund_creation.retry_refund(stuck, actor=MIRA, now=soon)
    done = process_refund(stuck, now=soon)
    assert (done.status, [each["amount"] for each in stripe_refunds(fake)]) == ("succeeded", [150])


@pytest.mark.parametrize("code", ["charge_disputed", "charge_already_refunded"])
def test_a_refund_refused_by_stripe_restores_the_balance(fake: FakeStripe, code: str) -> None:
    invoice = create_credited_invoice(fake)
    fake.things.refund_refused = code
    done = process_refund(request_refund(invoice, 150))
    assert (done.status, done.code, balance_of(invoice)) == ("declined", code, 200)


def test_a_refund_that_failed_after_a_crash_is_declined(fake: FakeStripe) -> None:
    invoice = create_credited_invoice(fake)
    refund = request_refund(invoice, 150)
    with (
        mock.patch.object(refund_submission.REFUND_TRANSACTIONS, "settle", side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        process_refund(refund)
    (made,) = stripe_refunds(fake)
    made["status"] = "failed"
    done = process_refund(refund, now=NOW + HOUR)
    assert (done.status, done.code, balance_of(invoice)) == ("declined", "refund_failed", 200)


def test_a_refund_returned_before_its_success_is_recorded_restores_the_balance(
    fake: FakeStripe,
) -> None:
    invoice = create_credited_invoice(fake)
    refund, settle = request_refund(invoice, 150), refund_submission.REFUND_TRANSACTIONS.settle

    def late(*reported: Any) -> None:
        (made,) = stripe_refunds(fake)
        made["status"] = "failed"
        fake.things.get("charge", made["charge"])["amount_refunded"] = 0
        event = fake.things.tell("refund.failed", made)
        webhook_inbox.receive_event(*webhook_of(event, SECRETS[0], NOW), now=NOW)
        webhook_events.process_event(event["id"], now=NOW)
        settle(*reported)

    with mock.patch.object(refund_submission.REFUND_TRANSACTIONS, "settle", late):
        done = process_refund(refund)
    assert (done.status, done.returned_at, balance_of(invoice)) == ("succeeded", NOW, 200)
    assert process_refund(request_refund(invoice, 150)).status == "succeeded"
