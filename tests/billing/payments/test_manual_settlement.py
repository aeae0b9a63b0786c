"""Manual settlement of stuck payments by operators."""

from datetime import datetime, timedelta
from typing import Any
from unittest import mock

import pytest

from billing.gateways.simulated import GatewayFault, SimulatedGateway
from billing.models import Invoice, Payment
from billing.services.payments import gateway_transactions, manual_settlements, payment_collection
from billing.services.payments.gateway_transactions import TransactionChanged
from billing.services.payments.manual_settlements import ManualSettlementRefused
from billing.services.payments.payment_status import InvoicePaymentState, payment_status
from billing.services.reports import pending_collections
from ports import payments
from ports.payments import Declined
from tenants.models import AuditEvent
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue
from tenants.services.rls import staff_scope, tenant_scope
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
LATER = NOW + timedelta(hours=1)
ADA = Actor("staff", "usr_ada", "ada@operator.example")


class Other(SimulatedGateway):
    name = "other"


def create_stuck_payment(invoice: Invoice) -> Payment:
    fail_next_charges(invoice, GatewayFault.REJECTED)
    return process_payment(request_payment(invoice))


def settle_as_failed(payment: Payment, *, why: str = "the account was closed", now: datetime = LATER) -> Payment:
    """Mark a payment as failed, and let a worker process it."""
    manual_settlements.settle_as_not_taken(payment_collection.PAYMENTS, payment, why=why, actor=ADA, now=now)
    return process_payment(payment, now=now)


def test_a_payment_marked_failed_makes_its_invoice_payable_at_the_new_gateway() -> None:
    invoice = create_final_invoice()
    payment = create_stuck_payment(invoice)
    with payments.using_gateway(Other()):
        settle_as_failed(payment)
        with tenant_scope(invoice.tenant_id):
            status = payment_status(reload_invoice(invoice))
        assert (status.state, status.payable) == (InvoicePaymentState.DECLINED, True)
        assert process_payment(request_payment(invoice, now=LATER), now=LATER).status == "succeeded"
    first, second = payments_of(invoice)
    assert (first.status, first.code, first.settled_at) == ("declined", "marked_failed", LATER)
    assert first.reason == "Marked as failed by an operator: the account was closed"
    assert (second.gateway, reload_invoice(invoice).status, charged_amounts(invoice)) == ("other", "paid", [200])


def test_a_manual_settlement_is_audited_with_operator_and_reason() -> None:
    invoice = create_final_invoice()
    payment = create_stuck_payment(invoice)
    settle_as_failed(payment)
    with tenant_scope(invoice.tenant_id):
        event = AuditEvent.objects.get(action="payment.mark_failed")
    assert (event.actor_kind, event.actor_label, event.subject_id) == ("staff", ADA.label, invoice.pk)
    assert event.detail["reason"] == "the account was closed"
    assert event.detail["payment"] == payment.pk
    assert (event.detail["gateway"], event.detail["code"]) == ("simulated", "bad_credentials")


def test_after_a_manual_failure_the_invoice_is_collected_automatically_again() -> None:
    invoice = create_final_invoice()
    payment = create_stuck_payment(invoice)
    settle_as_failed(payment)
    sweep_payments(NOW + timedelta(days=2))
    assert reload_invoice(invoice).status == "paid"
    assert [each.automatic for each in payments_of(invoice)] == [False, True]


def test_a_manual_settlement_requires_a_reason() -> None:
    invoice = create_final_invoice()
    payment = create_stuck_payment(invoice)
    with pytest.raises(InvalidValue):
        settle_as_failed(payment, why=" ")
    assert [each.status for each in payments_of(invoice)] == ["stuck"]


def test_a_manual_settlement_is_refused_until_the_claim_has_expired() -> None:
    invoice = create_final_invoice()
    payment = create_stuck_payment(invoice)
    with pytest.raises(ManualSettlementRefused, match="may still respond"):
        settle_as_failed(payment, now=NOW + gateway_transactions.CLAIM_DURATION - timedelta(seconds=1))
    assert [each.status for each in payments_of(invoice)] == ["stuck"]
    settle_as_failed(payment, now=NOW + gateway_transactions.CLAIM_DURATION)
    assert [each.status for each in payments_of(invoice)] == ["declined"]


def test_a_pending_or_settled_payment_cannot_be_settled_manually() -> None:
    invoice = create_final_invoice()
    payment = request_payment(invoice)
    with pytest.raises(ManualSettlementRefused, match="is pending"):
        settle_as_failed(payment)
    process_payment(payment)
    with pytest.raises(ManualSettlementRefused, match="is succeeded"):
        settle_as_failed(payment)
    assert (reload_invoice(invoice).status, [each.status for each in payments_of(invoice)]) == ("paid", ["succeeded"])


def test_a_payment_claimed_by_a_worker_cannot_be_settled_manually() -> None:
    invoice = create_final_invoice()
    payment = create_stuck_payment(invoice)
    real = manual_settlements._check_settleable

    def meanwhile(*reported: Any) -> None:
        real(*reported)
        with tenant_scope(invoice.tenant_id):
            Payment.objects.update(status="pending", due_at=LATER, stuck_at=None, claimed_until=LATER)

    refused = pytest.raises(ManualSettlementRefused, match="has changed in the meantime")
    with (
        payments.using_gateway(Other()),
        mock.patch.object(manual_settlements, "_check_settleable", meanwhile),
        refused,
    ):
        settle_as_failed(payment)
    with (
        mock.patch.object(manual_settlements, "_check_settleable", meanwhile),
        pytest.raises(TransactionChanged, match="has changed in the meantime"),
    ):
        settle_as_failed(payment)


def test_a_payment_of_a_removed_gateway_is_listed_and_can_be_settled() -> None:
    invoice = create_final_invoice()
    payment = request_payment(invoice)
    with payments.using_gateway(None):
        process_payment(payment)
        with staff_scope():
            seen = pending_collections.read_pending_collections(now=LATER)
            assert [each.pk for each in pending_collections.stuck_payments()] == [payment.pk]
        assert (seen.stuck, seen.pending) == (1, 0)
        settle_as_failed(payment)
        with tenant_scope(invoice.tenant_id):
            assert payment_status(reload_invoice(invoice)).state is InvoicePaymentState.TRANSFER
        with staff_scope():
            assert pending_collections.read_pending_collections(now=LATER).stuck == 0


def test_a_manual_settlement_waits_for_the_claim_of_a_removed_gateway() -> None:
    invoice = create_final_invoice()
    payment = request_payment(invoice)
    assert payment_collection.PAYMENTS.claim(payment.pk, payment.tenant_id, NOW) is not None
    with (
        payments.using_gateway(None),
        pytest.raises(ManualSettlementRefused, match="simulated may still respond to"),
    ):
        settle_as_failed(payment, now=NOW)


def test_an_invoice_whose_charge_succeeded_is_paid_although_marked_failed() -> None:
    invoice = create_final_invoice()
    fail_next_charges(invoice, GatewayFault.LOST, GatewayFault.REJECTED)
    payment = request_payment(invoice)
    process_payment(payment)
    assert process_payment(payment, now=NOW + timedelta(minutes=5)).status == "stuck"
    assert settle_as_failed(payment).status == "succeeded"
    assert (reload_invoice(invoice).status, charged_amounts(invoice)) == ("paid", [200])


def test_an_unreachable_gateway_keeps_the_payment_pending_with_its_reason() -> None:
    invoice = create_final_invoice()
    payment = create_stuck_payment(invoice)
    fail_next_charges(invoice, GatewayFault.UNREACHABLE, GatewayFault.REJECTED)
    waits = settle_as_failed(payment)
    assert (waits.status, waits.mark_failed_reason) == ("pending", "the account was closed")
    again = process_payment(payment, now=LATER + timedelta(minutes=5))
    assert (again.status, again.mark_failed_reason, again.code) == ("stuck", "", "bad_credentials")
    with tenant_scope(invoice.tenant_id):
        assert process_payment(
            request_payment(invoice, now=LATER + timedelta(hours=1)), now=LATER + timedelta(hours=1)
        ).status
    assert charged_amounts(invoice) == [200]


def test_a_withdrawn_charge_is_declined_under_its_old_key() -> None:
    invoice = create_final_invoice()
    payment = settle_as_failed(create_stuck_payment(invoice))
    with tenant_scope(invoice.tenant_id):
        charge = payment_collection.charge_request(Payment.objects.select_related("invoice").get(pk=payment.pk))
    assert isinstance(SimulatedGateway().charge(charge, now=LATER), Declined)
    assert charged_amounts(invoice) == []
