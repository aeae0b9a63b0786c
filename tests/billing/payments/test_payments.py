"""Requested and automatic collection of final invoices."""

from datetime import timedelta

import pytest
from django.db import OperationalError

from billing.domain.payment_retries import MAX_AUTO_RETRIES
from billing.gateways.simulated import GatewayFault, SimulatedGateway
from billing.models import Invoice, Payment
from billing.services.payments import payment_collection, payment_creation
from billing.services.payments.payment_creation import NotPayable
from billing.services.payments.payment_status import InvoicePaymentState, payment_status
from ports import payments
from ports.payments import GatewayCharge, GatewayOutcome
from tenants.models import AuditEvent
from tenants.services.rls import tenant_scope
from tests.billing.payments.payable_invoices import (
    MIRA,
    NOW,
    CapturedMessages,
    charged_amounts,
    create_draft_invoice,
    create_final_invoice,
    fail_next_charges,
    payments_of,
    process_payment,
    reload_invoice,
    request_payment,
    sweep_payments,
)

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


def payment_state(invoice: Invoice) -> tuple[InvoicePaymentState, bool]:
    with tenant_scope(invoice.tenant_id):
        status = payment_status(reload_invoice(invoice))
        return status.state, status.payable


def test_a_requested_payment_charges_the_full_invoice_once() -> None:
    invoice = create_final_invoice()
    payment = request_payment(invoice)
    assert (payment.status, payment.minor, payment.currency, payment.automatic) == (
        "pending",
        200,
        "EUR",
        False,
    )
    later = NOW + timedelta(seconds=3)
    payment = process_payment(payment, now=later)
    assert (payment.status, payment.settled_at, payment.due_at) == ("succeeded", later, None)
    assert payment.reference.startswith("sim_")
    assert (reload_invoice(invoice).status, reload_invoice(invoice).paid_at) == ("paid", later)
    assert charged_amounts(invoice) == [200]


def test_a_payment_request_notifies_a_worker_at_once(enqueued: CapturedMessages) -> None:
    payment = request_payment(create_final_invoice())
    assert ("billing.collect", payment.pk, payment.tenant_id, NOW) in enqueued


def test_a_due_invoice_is_collected_automatically() -> None:
    first, second = create_final_invoice(), create_final_invoice(5 * 10**9, currency="JPY")
    sweep_payments(NOW)
    assert [reload_invoice(each).status for each in (first, second)] == ["paid", "paid"]
    assert [payment.automatic for payment in payments_of(first)] == [True]
    assert (charged_amounts(first), charged_amounts(second)) == ([200], [5])


def test_a_second_sweep_collects_nothing() -> None:
    invoice = create_final_invoice()
    sweep_payments(NOW)
    sweep_payments(NOW + DAY)
    assert payment_creation.open_due_payments(now=NOW + 2 * DAY) == 0
    assert charged_amounts(invoice) == [200]


def test_a_payment_is_audited_with_its_requester_and_outcome() -> None:
    invoice = create_final_invoice()
    process_payment(request_payment(invoice))
    with tenant_scope(invoice.tenant_id):
        rows = AuditEvent.objects.filter(subject_id=invoice.pk, action__in=["payment.open", "invoice.pay"])
        found = [(each.action, each.actor_label, each.detail["amount"]) for each in rows.order_by("pk")]
    assert found == [("payment.open", MIRA.label, 200), ("invoice.pay", "billing", 200)]


def test_an_invoice_of_zero_is_paid_without_a_charge() -> None:
    invoice = create_final_invoice(0)
    with pytest.raises(NotPayable, match="Nothing is due"):
        request_payment(invoice)
    with payments.using_gateway(None):
        assert payment_creation.open_due_payments(now=NOW) == 1
    assert (reload_invoice(invoice).status, reload_invoice(invoice).paid_at) == ("paid", NOW)
    assert (payments_of(invoice), charged_amounts(invoice)) == ([], [])
    assert payment_state(invoice) == (InvoicePaymentState.PAID, False)


def test_a_declined_payment_has_a_reason_and_can_be_retried() -> None:
    invoice = create_final_invoice()
    fail_next_charges(invoice, GatewayFault.DECLINED)
    first = process_payment(request_payment(invoice))
    assert (first.status, first.code, first.settled_at) == ("declined", "insufficient_funds", NOW)
    assert "insufficient funds" in first.reason
    assert reload_invoice(invoice).status == "finalized"
    assert payment_state(invoice) == (InvoicePaymentState.DECLINED, True)
    with tenant_scope(invoice.tenant_id):
        status = payment_status(reload_invoice(invoice))
    assert (status.payment, status.next_retry_at) == (first, NOW + DAY)
    second = process_payment(request_payment(invoice))
    assert second.pk != first.pk
    assert (second.status, reload_invoice(invoice).status, charged_amounts(invoice)) == ("succeeded", "paid", [200])


@pytest.mark.deep
def test_a_declined_payment_is_retried_daily_up_to_the_maximum() -> None:
    invoice = create_final_invoice()
    fail_next_charges(invoice, *[GatewayFault.DECLINED] * 50)
    for hour in range(24 * 10):
        sweep_payments(NOW + timedelta(hours=hour))
    attempts = payments_of(invoice)
    assert len(attempts) == MAX_AUTO_RETRIES
    assert [each.opened_at for each in attempts] == [NOW + n * DAY for n in range(MAX_AUTO_RETRIES)]


def test_after_a_declined_manual_payment_collection_waits_a_day() -> None:
    invoice = create_final_invoice()
    fail_next_charges(invoice, GatewayFault.DECLINED)
    process_payment(request_payment(invoice))
    assert payment_creation.open_due_payments(now=NOW + DAY - timedelta(seconds=1)) == 0
    assert payment_creation.open_due_payments(now=NOW + DAY) == 1


def test_due_invoices_are_checked_again_under_a_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting, declined = create_final_invoice(), create_final_invoice()
    request_payment(waiting)
    fail_next_charges(declined, GatewayFault.DECLINED)
    process_payment(request_payment(declined))
    late = [(each.pk, each.tenant_id) for each in (waiting, declined)]
    monkeypatch.setattr(payment_creation, "_due_invoices", lambda now: late)
    assert payment_creation.open_due_payments(now=NOW) == 0
    assert [len(payments_of(each)) for each in (waiting, declined)] == [1, 1]


def test_a_draft_cannot_be_paid() -> None:
    invoice = create_draft_invoice()
    with pytest.raises(NotPayable, match="is draft; only final invoices can be paid"):
        request_payment(invoice)
    assert payment_state(invoice) == (InvoicePaymentState.NOTHING_DUE, False)
    assert payment_creation.open_due_payments(now=NOW) == 0


def test_a_paid_invoice_cannot_be_paid_again() -> None:
    invoice = create_final_invoice()
    process_payment(request_payment(invoice))
    with pytest.raises(NotPayable, match="is paid"):
        request_payment(invoice)
    assert payment_state(invoice) == (InvoicePaymentState.PAID, False)


def test_a_second_payment_during_a_pending_one_is_refused() -> None:
    invoice = create_final_invoice()
    payment = request_payment(invoice)
    with pytest.raises(NotPayable, match=payment.pk) as refused:
        request_payment(invoice)
    assert refused.value.fix.href == f"/api/v1/payments/{payment.pk}"
    assert payment_state(invoice) == (InvoicePaymentState.PENDING, False)


def test_without_a_gateway_an_invoice_is_payable_by_transfer_only() -> None:
    invoice = create_final_invoice()
    assert payment_state(invoice) == (InvoicePaymentState.DUE, True)
    with tenant_scope(invoice.tenant_id):
        assert (payment_status(invoice).payment, payment_status(invoice).next_retry_at) == (None, None)
    with payments.using_gateway(None):
        with pytest.raises(NotPayable, match="does not collect payments") as refused:
            request_payment(invoice)
        assert payment_creation.open_due_payments(now=NOW) == 0
        assert payment_state(invoice) == (InvoicePaymentState.TRANSFER, False)
    assert str(invoice) in refused.value.fix.text
    assert reload_invoice(invoice).status == "finalized"


def test_an_invoice_issued_without_a_gateway_is_never_collected_automatically() -> None:
    with payments.using_gateway(None):
        invoice = create_final_invoice()
    assert payment_creation.open_due_payments(now=NOW + 400 * DAY) == 0
    assert payment_state(invoice) == (InvoicePaymentState.DUE, True)
    fail_next_charges(invoice, GatewayFault.DECLINED)
    process_payment(request_payment(invoice))
    with tenant_scope(invoice.tenant_id):
        assert (payment_status(invoice).state, payment_status(invoice).next_retry_at) == (
            InvoicePaymentState.DECLINED,
            None,
        )
    assert payment_creation.open_due_payments(now=NOW + 400 * DAY) == 0
    assert charged_amounts(invoice) == []


def test_an_invoice_that_fails_to_be_collected_blocks_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = create_final_invoice(), create_final_invoice()

    def refuse(invoice: Invoice, *given: object, **more: object) -> Payment:
        if invoice.pk == first.pk:
            raise OperationalError("canceling statement due to lock timeout")
        return really(invoice, *given, **more)

    really = payment_creation._create_payment
    monkeypatch.setattr(payment_creation, "_create_payment", refuse)
    assert payment_creation.open_due_payments(now=NOW) == 1
    assert [len(payments_of(each)) for each in (first, second)] == [0, 1]


def test_a_payment_waits_for_the_gateway_it_started_with() -> None:
    """Another one knows nothing of its key, and would take the money a second time."""
    invoice = create_final_invoice()
    payment = request_payment(invoice)

    class Other(SimulatedGateway):
        name = "other"

        def charge(self, charge: GatewayCharge, *, now: object) -> GatewayOutcome:
            raise AssertionError(f"asked for {charge}")

    with payments.using_gateway(Other()):
        waiting = process_payment(payment)
    with payments.using_gateway(None):
        waiting = process_payment(payment, now=NOW + timedelta(hours=2))
    assert (waiting.status, waiting.attempts) == ("pending", 2)
    assert "the gateway simulated, which is no longer configured" in waiting.last_error
    assert payment_collection.PAYMENTS.due(now=NOW + DAY) == [("billing.collect", payment.pk, payment.tenant_id)]
