"""Setup of paid, partly credited invoices and their refunds."""

from datetime import datetime

from billing.models import Invoice, Payment, PaymentStatus, Refund, SimulatedRefund
from billing.services.ledger import ledger_balances
from billing.services.payments.refunds import refund_creation, refund_submission
from tenants.services.rls import tenant_scope
from tests.billing.credit_notes.issued_notes import create_october_invoice_of, issue_note
from tests.billing.payments.payable_invoices import MIRA, NOW, process_payment, request_payment

WHY = "charged twice elsewhere"


def create_paid_invoice(*, credited: int = 120) -> Invoice:
    """Return a paid invoice of 3.05, credited by this much."""
    invoice = create_october_invoice_of()
    process_payment(request_payment(invoice))
    if credited:
        issue_note(invoice, {1: credited})
    return invoice


def payment_of(invoice: Invoice) -> Payment:
    with tenant_scope(invoice.tenant_id):
        rows = Payment.objects.select_related("invoice", "tenant")
        return rows.get(invoice=invoice, status=PaymentStatus.SUCCEEDED)


def request_refund(invoice: Invoice, minor: int, *, seen: int = 0, why: str = WHY, now: datetime = NOW) -> Refund:
    """Request a refund as an operator."""
    return refund_creation.open_refund(payment_of(invoice), minor=minor, seen=seen, why=why, actor=MIRA, now=now)


def process_refund(refund: Refund, *, now: datetime = NOW) -> Refund:
    """Let a worker process a refund, and return its new state."""
    refund_submission.REFUND_TRANSACTIONS.collect(refund.pk, refund.tenant_id, now=now)
    return reload_refund(refund)


def reload_refund(refund: Refund) -> Refund:
    with tenant_scope(refund.tenant_id):
        return Refund.objects.select_related("payment__invoice").get(pk=refund.pk)


def refunds_of(invoice: Invoice) -> list[Refund]:
    with tenant_scope(invoice.tenant_id):
        return list(Refund.objects.order_by("opened_at", "pk"))


def balance_of(invoice: Invoice) -> int:
    with tenant_scope(invoice.tenant_id):
        return ledger_balances.available_balance(invoice.tenant_id, invoice.currency)


def refunded_amounts(invoice: Invoice) -> list[int]:
    """Return what the gateway refunded."""
    rows = SimulatedRefund.objects.filter(charge__payer=invoice.tenant_id)
    return list(rows.order_by("key").values_list("minor", flat=True))
