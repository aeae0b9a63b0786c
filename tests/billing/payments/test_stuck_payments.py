"""Stuck payments: rejection, retries and unexpected failures."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

import pytest

from billing import tasks
from billing.domain.payment_retries import MAX_UNEXPECTED_FAILURES
from billing.gateways.simulated import GatewayFault, SimulatedGateway
from billing.models import Invoice, Payment
from billing.services.payments import gateway_transactions, payment_collection, payment_creation
from billing.services.payments.payment_creation import NotPayable
from billing.services.payments.payment_status import InvoicePaymentState, payment_status
from config import metrics
from ports import clock, payments
from ports.payments import Declined, GatewayCharge, GatewayOutcome, Succeeded
from tenants.models import AuditEvent
from tenants.services.rls import tenant_scope
from tests.billing.payments.payable_invoices import (
    NOW,
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


class Broken(SimulatedGateway):
    """Takes the money, and then trips over its own feet."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)

    def charge(self, charge: GatewayCharge, *, now: datetime) -> GatewayOutcome:
        outcome = super().charge(charge, now=now)
        if self.errors:
            raise self.errors.pop(0)
        return outcome


class Says(SimulatedGateway):
    """Answers with what it was given."""

    def __init__(self, outcome: GatewayOutcome) -> None:
        self.outcome = outcome

    def charge(self, charge: GatewayCharge, *, now: datetime) -> GatewayOutcome:
        return self.outcome


def run_collect_task(payment: Payment, *, now: datetime) -> Payment:
    """Let a worker run the task."""
    with clock.frozen_at(now):
        tasks.collect(payment.pk, payment.tenant_id)
    with tenant_scope(payment.tenant_id):
        return Payment.objects.get(pk=payment.pk)


@contextmanager
def failing_gateway(*errors: Exception) -> Iterator[Broken]:
    gateway = Broken(*errors)
    with payments.using_gateway(gateway):
        yield gateway


def create_stuck_payment(invoice: Invoice) -> Payment:
    """Let the payment of an invoice be rejected, and return it."""
    fail_next_charges(invoice, GatewayFault.REJECTED)
    return process_payment(request_payment(invoice))


def payment_state(invoice: Invoice) -> tuple[InvoicePaymentState, bool]:
    with tenant_scope(invoice.tenant_id):
        status = payment_status(reload_invoice(invoice))
        return status.state, status.payable


def audited_actions(invoice: Invoice) -> list[str]:
    with tenant_scope(invoice.tenant_id):
        rows = AuditEvent.objects.filter(subject_id=invoice.pk).order_by("pk")
        return [each.action for each in rows if each.action != "invoice.finalize"]


def read_gauges() -> dict[str, float]:
    return {sample.name: sample.value for family in metrics.database_gauges() for sample in family.samples}


def test_a_rejected_payment_becomes_stuck_with_its_reason() -> None:
    invoice = create_final_invoice()
    payment = create_stuck_payment(invoice)
    assert (payment.status, payment.stuck_at, payment.due_at) == ("stuck", NOW, None)
    assert (payment.code, payment.reason) == (
        "bad_credentials",
        "The simulated gateway does not accept our credentials.",
    )
    assert payment_state(invoice) == (InvoicePaymentState.STUCK, True)
    assert audited_actions(invoice) == ["payment.open", "payment.stuck"]
    assert read_gauges()["gpubroker_payments_stuck"] == 1


def test_a_stuck_payment_is_neither_retried_nor_replaced_automatically() -> None:
    invoice = create_final_invoice()
    payment = create_stuck_payment(invoice)
    for day in range(10):
        sweep_payments(NOW + timedelta(days=day))
        process_payment(payment, now=NOW + timedelta(days=day))
    assert [(each.pk, each.attempts) for each in payments_of(invoice)] == [(payment.pk, 1)]
    assert charged_amounts(invoice) == []


def test_paying_a_stuck_invoice_again_retries_the_same_payment(enqueued: list[tuple[str, ...]]) -> None:
    invoice = create_final_invoice()
    payment = create_stuck_payment(invoice)
    again = request_payment(invoice, now=NOW + HOUR)
    assert (again.pk, again.status, again.due_at, again.reason) == (payment.pk, "pending", NOW + HOUR, "")
    assert enqueued[-1] == ("billing.collect", payment.pk, payment.tenant_id, NOW + HOUR)
    assert process_payment(again, now=NOW + HOUR).status == "succeeded"
    assert (reload_invoice(invoice).status, charged_amounts(invoice), len(payments_of(invoice))) == ("paid", [200], 1)
    assert audited_actions(invoice) == ["payment.open", "payment.stuck", "payment.retry", "invoice.pay"]
    assert read_gauges()["gpubroker_payments_stuck"] == 0


def test_a_charge_taken_before_a_rejection_is_found_and_not_repeated() -> None:
    invoice = create_final_invoice()
    fail_next_charges(invoice, GatewayFault.LOST, GatewayFault.REJECTED)
    waiting = process_payment(request_payment(invoice))
    assert waiting.due_at is not None
    assert process_payment(waiting, now=waiting.due_at).status == "stuck"
    assert charged_amounts(invoice) == [200]
    process_payment(request_payment(invoice, now=NOW + HOUR), now=NOW + HOUR)
    assert (reload_invoice(invoice).status, charged_amounts(invoice)) == ("paid", [200])


def test_a_stuck_payment_is_not_retried_at_another_gateway() -> None:
    invoice = create_final_invoice()
    create_stuck_payment(invoice)

    class Other(SimulatedGateway):
        name = "other"

    for collector in (Other(), None):
        with payments.using_gateway(collector):
            assert payment_state(invoice) == (InvoicePaymentState.STUCK, False)
            with pytest.raises(NotPayable, match="started through simulated") as refused:
                request_payment(invoice, now=NOW + HOUR)
            assert "Ask the operator" in refused.value.fix.text
    assert [each.status for each in payments_of(invoice)] == ["stuck"]


def test_a_late_success_settles_a_stuck_payment() -> None:
    """The first worker returns with a reference after a rejection."""
    invoice = create_final_invoice()
    payment = request_payment(invoice)
    slow = payment_collection.PAYMENTS.claim(payment.pk, payment.tenant_id, NOW)
    assert slow is not None
    fail_next_charges(invoice, GatewayFault.REJECTED)
    assert process_payment(payment, now=NOW + 2 * gateway_transactions.CLAIM_DURATION).status == "stuck"
    payment_collection.PAYMENTS.settle(slow, payment_collection.PAYMENTS.request_outcome(slow, NOW), NOW + HOUR)
    (after,) = payments_of(invoice)
    assert (after.status, after.stuck_at, after.reason, after.code) == ("succeeded", None, "", "")
    assert (reload_invoice(invoice).status, charged_amounts(invoice)) == ("paid", [200])


def test_a_late_rejection_does_not_change_a_succeeded_payment() -> None:
    invoice = create_final_invoice()
    payment = request_payment(invoice)
    slow = payment_collection.PAYMENTS.claim(payment.pk, payment.tenant_id, NOW)
    assert slow is not None
    process_payment(payment, now=NOW + 2 * gateway_transactions.CLAIM_DURATION)
    payment_collection.PAYMENTS.mark_stuck(slow, "No.", "no", NOW + HOUR)
    assert [each.status for each in payments_of(invoice)] == ["succeeded"]


def test_an_unexpected_payment_error_is_recorded_logged_and_retried(caplog: pytest.LogCaptureFixture) -> None:
    invoice = create_final_invoice()
    payment = request_payment(invoice)
    with failing_gateway(KeyError("token=hunter2")):
        waiting = run_collect_task(payment, now=NOW)
        assert (waiting.status, waiting.consecutive_failures, waiting.claimed_until) == ("pending", 1, None)
        assert waiting.last_error == "the attempt failed unexpectedly, with KeyError"
        assert "KeyError" in caplog.text
        assert (read_gauges()["gpubroker_payments_failing"], read_gauges()["gpubroker_payments_stuck"]) == (1, 0)
        assert waiting.due_at is not None
        assert run_collect_task(payment, now=waiting.due_at).status == "succeeded"
    assert (reload_invoice(invoice).status, charged_amounts(invoice)) == ("paid", [200])
    assert read_gauges()["gpubroker_payments_failing"] == 0


def test_a_payment_becomes_stuck_after_the_maximum_unexpected_failures() -> None:
    invoice = create_final_invoice()
    payment, now, waits = request_payment(invoice), NOW, []
    with failing_gateway(*[ValueError("a mistake")] * 50) as gateway:
        while payment.due_at is not None:
            assert charged_amounts(invoice) in ([], [200])
            waits.append(payment.due_at - now)
            now = payment.due_at
            payment = run_collect_task(payment, now=now)
            assert len(waits) < 50
        assert len(waits) == MAX_UNEXPECTED_FAILURES
        assert waits == sorted(waits)
        assert payment.status == "stuck"
        assert payment.reason == "8 attempts in a row failed unexpectedly, the last with ValueError."
        gateway.errors.clear()
        assert run_collect_task(request_payment(invoice, now=now), now=now).status == "succeeded"
    assert (reload_invoice(invoice).status, charged_amounts(invoice), len(payments_of(invoice))) == ("paid", [200], 1)


def test_an_unreachable_gateway_resets_the_count_of_unexpected_failures() -> None:
    invoice = create_final_invoice()
    payment, now = request_payment(invoice), NOW
    for _ in range(3):
        with failing_gateway(*[ValueError("a mistake")] * (MAX_UNEXPECTED_FAILURES - 1)):
            for _ in range(MAX_UNEXPECTED_FAILURES - 1):
                payment = run_collect_task(payment, now=now)
                assert payment.due_at is not None
                now = payment.due_at
        fail_next_charges(invoice, GatewayFault.UNREACHABLE)
        payment = run_collect_task(payment, now=now)
        assert (payment.status, payment.consecutive_failures) == ("pending", 0)
        assert payment.due_at is not None
        now = payment.due_at


def test_a_payment_that_crashes_its_workers_is_not_retried_forever() -> None:
    invoice = create_final_invoice()
    payment, now = request_payment(invoice), NOW
    for _ in range(MAX_UNEXPECTED_FAILURES):
        assert (
            payment_collection.PAYMENTS.claim(payment.pk, payment.tenant_id, now) is not None
        )  # and no more is heard of it
        now += 2 * gateway_transactions.CLAIM_DURATION
    payment = process_payment(payment, now=now)
    assert (payment.status, payment.code) == ("stuck", "unforeseen")
    assert "because the worker process died" in payment.reason
    assert charged_amounts(invoice) == []


@pytest.mark.parametrize(("reference", "kept"), [("x" * 121, "x" * 120), ("sim\0", "sim")])
def test_a_succeeded_charge_counts_even_with_an_invalid_reference(reference: str, kept: str) -> None:
    invoice = create_final_invoice()
    with payments.using_gateway(Says(Succeeded(reference))):
        payment = run_collect_task(request_payment(invoice), now=NOW)
    assert (payment.status, payment.reference) == ("succeeded", kept)
    assert reload_invoice(invoice).status == "paid"


def test_a_malformed_gateway_answer_is_recorded_as_a_failure() -> None:
    invoice = create_final_invoice()
    with payments.using_gateway(Says(Succeeded(None))):  # type: ignore[arg-type]
        payment = run_collect_task(request_payment(invoice), now=NOW)
    assert (payment.status, payment.consecutive_failures) == ("pending", 1)
    assert reload_invoice(invoice).status == "finalized"


def test_a_missing_gateway_answer_is_recorded_as_a_failure() -> None:
    with payments.using_gateway(Says(None)):  # type: ignore[arg-type]
        payment = run_collect_task(request_payment(create_final_invoice()), now=NOW)
    assert (payment.status, payment.last_error) == (
        "pending",
        "the attempt failed unexpectedly, with AttributeError",
    )


def test_gateway_reasons_are_truncated_and_lose_nul_characters() -> None:
    with payments.using_gateway(Says(Declined("No\0. " + "x" * 500, "c" * 200))):
        payment = run_collect_task(request_payment(create_final_invoice()), now=NOW)
    assert (payment.status, len(payment.reason), len(payment.code)) == ("declined", 200, 60)
    assert payment.reason.startswith("No. x")


def test_an_error_before_a_payment_is_claimed_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    payment = request_payment(create_final_invoice())

    def fails(*given: object) -> None:
        raise ValueError("before the claim")

    monkeypatch.setattr(payment_collection.PAYMENTS, "claim", fails)
    with pytest.raises(ValueError, match="before the claim"):
        run_collect_task(payment, now=NOW)


def test_a_failing_payment_does_not_block_other_payments() -> None:
    first, second = create_final_invoice(), create_final_invoice()
    with failing_gateway(ValueError("a mistake")):
        assert run_collect_task(request_payment(first), now=NOW).status == "pending"
        assert run_collect_task(request_payment(second), now=NOW).status == "succeeded"
    assert payment_creation.open_due_payments(now=NOW + timedelta(days=3)) == 0
