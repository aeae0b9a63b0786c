"""Retries with the same key after lost or late gateway answers."""

from datetime import timedelta

import pytest

from billing.gateways.simulated import GatewayFault
from billing.models import SimulatedCharge
from billing.services.payments import gateway_transactions, payment_collection
from tests.billing.payments.payable_invoices import (
    NOW,
    CapturedMessages,
    charged_amounts,
    create_final_invoice,
    fail_next_charges,
    payments_of,
    process_payment,
    reload_invoice,
    request_payment,
    sweep_payments,
)

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


def test_a_charge_with_a_lost_answer_is_found_by_the_retry() -> None:
    invoice = create_final_invoice()
    fail_next_charges(invoice, GatewayFault.LOST)
    payment = process_payment(request_payment(invoice))
    assert (payment.status, payment.last_error) == ("pending", "the simulated gateway's answer was lost")
    assert (charged_amounts(invoice), reload_invoice(invoice).status) == ([200], "finalized")
    payment = process_payment(payment, now=NOW + HOUR)
    assert (payment.status, payment.last_error, payment.attempts) == ("succeeded", "", 2)
    assert (charged_amounts(invoice), reload_invoice(invoice).status) == ([200], "paid")


def test_each_unanswered_attempt_is_retried_after_a_longer_wait(enqueued: CapturedMessages) -> None:
    invoice = create_final_invoice()
    fail_next_charges(invoice, *[GatewayFault.UNREACHABLE] * 6)
    payment, now, waits = request_payment(invoice), NOW, []
    for _ in range(6):
        payment = process_payment(payment, now=now)
        assert payment.due_at is not None
        assert enqueued[-1] == ("billing.collect", payment.pk, payment.tenant_id, payment.due_at)
        waits.append((payment.due_at - now).total_seconds())
        now = payment.due_at
    for wait, least in zip(waits, (5, 10, 20, 40, 80, 160), strict=True):
        assert least <= wait <= least * 3 // 2
    assert process_payment(payment, now=now).status == "succeeded"
    assert charged_amounts(invoice) == [200]


def test_a_payment_is_not_retried_before_it_is_due() -> None:
    invoice = create_final_invoice()
    fail_next_charges(invoice, GatewayFault.UNREACHABLE)
    payment = process_payment(request_payment(invoice))
    assert payment.due_at is not None
    early = process_payment(payment, now=payment.due_at - timedelta(seconds=1))
    assert (early.attempts, charged_amounts(invoice)) == (1, [])


def test_a_slow_gateway_is_retried_at_the_time_it_stated(enqueued: CapturedMessages) -> None:
    invoice = create_final_invoice()
    fail_next_charges(invoice, GatewayFault.SLOW)
    payment = process_payment(request_payment(invoice))
    made = SimulatedCharge.objects.get(payer=invoice.tenant_id)
    assert payment.due_at is not None
    assert payment.due_at >= made.answers_at
    assert process_payment(payment, now=payment.due_at).status == "succeeded"


def test_a_payment_claimed_by_one_worker_is_not_collected_by_another() -> None:
    invoice = create_final_invoice()
    payment = request_payment(invoice)
    assert payment_collection.PAYMENTS.claim(payment.pk, payment.tenant_id, NOW) is not None
    assert process_payment(payment, now=NOW + timedelta(seconds=59)).status == "pending"
    assert charged_amounts(invoice) == []


def test_a_payment_of_a_crashed_worker_is_taken_over_after_its_claim() -> None:
    invoice = create_final_invoice()
    payment = request_payment(invoice)
    payment_collection.PAYMENTS.claim(payment.pk, payment.tenant_id, NOW)
    after = NOW + gateway_transactions.CLAIM_DURATION + timedelta(seconds=1)
    assert payment_collection.PAYMENTS.due(now=after) == [("billing.collect", payment.pk, payment.tenant_id)]
    assert process_payment(payment, now=after).status == "succeeded"
    assert charged_amounts(invoice) == [200]


@pytest.mark.parametrize("answer", [GatewayFault.NONE, GatewayFault.DECLINED, GatewayFault.UNREACHABLE])
def test_an_outdated_worker_changes_no_settled_payment(answer: GatewayFault) -> None:
    """Its claim expired during the call; a second worker was faster."""
    invoice = create_final_invoice()
    payment = request_payment(invoice)
    slow = payment_collection.PAYMENTS.claim(payment.pk, payment.tenant_id, NOW)
    assert slow is not None
    fail_next_charges(invoice, GatewayFault.DECLINED if answer is GatewayFault.DECLINED else GatewayFault.NONE)
    done = process_payment(payment, now=NOW + timedelta(minutes=5))
    assert done.settled_at is not None
    if answer is GatewayFault.UNREACHABLE:
        payment_collection.PAYMENTS.schedule_retry(slow, 5, "nothing", NOW + timedelta(minutes=6))
    else:
        much_later = NOW + timedelta(minutes=6)
        payment_collection.PAYMENTS.settle(
            slow, payment_collection.PAYMENTS.request_outcome(slow, much_later), much_later
        )
    (after,) = payments_of(invoice)
    assert (after.status, after.settled_at) == (done.status, done.settled_at)
    assert charged_amounts(invoice) == ([] if answer is GatewayFault.DECLINED else [200])


def test_an_idempotency_key_of_another_charge_makes_the_payment_stuck(caplog: pytest.LogCaptureFixture) -> None:
    invoice = create_final_invoice()
    payment = request_payment(invoice)
    SimulatedCharge.objects.create(
        key=payment.pk, payer="ten_x", minor=1, currency="EUR", text="", declined=False, made_at=NOW,
        answers_at=NOW,
    )  # fmt: skip
    stuck = process_payment(payment)
    assert (stuck.status, stuck.code) == ("stuck", "key_taken")
    assert "belongs to a charge of 1 EUR" in stuck.reason


@pytest.mark.deep
def test_payments_recover_after_a_gateway_outage_of_three_days() -> None:
    invoices = [create_final_invoice() for _ in range(3)]
    for invoice in invoices:
        fail_next_charges(invoice, *[GatewayFault.UNREACHABLE] * 40)
    now = NOW
    while now < NOW + timedelta(days=3):
        sweep_payments(now)
        now += timedelta(minutes=30)
    for invoice in invoices:
        fail_next_charges(invoice)
    sweep_payments(now + timedelta(hours=2))
    assert [reload_invoice(each).status for each in invoices] == ["paid"] * 3
    assert [charged_amounts(each) for each in invoices] == [[200]] * 3
    assert [len(payments_of(each)) for each in invoices] == [1] * 3
