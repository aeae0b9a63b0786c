"""Payment collection: a successful payment marks its invoice paid and is posted."""

from datetime import datetime

from django.db.models import QuerySet

from billing.models import Invoice, InvoiceStatus, Payment
from billing.services.ledger import posting
from billing.services.notifications import email_queue
from billing.services.payments.bank_receipts import receipt_assignment
from billing.services.payments.gateway_requests import charge_request
from billing.services.payments.gateway_transactions import GatewayTransactions
from billing.services.payments.payment_audit import record_invoice_event
from ports.payments import GatewayOutcome, PaymentGateway
from tenants.services.actors import Actor


class _PaymentTransactions(GatewayTransactions[Payment]):
    name, title, task = "payment", "payment", "billing.collect"

    def rows(self) -> QuerySet[Payment]:
        return Payment.objects.select_related("invoice")

    def send_request(self, gateway: PaymentGateway, row: Payment, *, now: datetime) -> GatewayOutcome:
        charge = charge_request(row)
        return gateway.withdraw(charge, now=now) if row.mark_failed_reason else gateway.charge(charge, now=now)

    def lock(self, row: Payment) -> None:
        # The invoice first, as when a payment is opened: another order of locks could deadlock.
        Invoice.objects.select_for_update().get(pk=row.invoice_id)

    def record(self, event: str, row: Payment, *, actor: Actor, now: datetime, **detail: object) -> None:
        action = "invoice.pay" if event == "succeed" else f"payment.{event}"
        record_invoice_event(action, row.invoice, actor=actor, now=now, payment=row.pk, **detail)

    def on_decline(self, row: Payment, reason: str, *, now: datetime) -> None:
        if not row.mark_failed_reason:  # otherwise an operator declined it, and no payment card failed
            email_queue.enqueue_email("payment-failed", row.pk, tenant_id=row.tenant_id, now=now)
        receipt_assignment.assign_waiting_for(row.invoice, now=now)

    def book(self, row: Payment, *, now: datetime) -> None:
        Invoice.objects.filter(pk=row.invoice_id).update(status=InvoiceStatus.PAID, paid_at=now)
        posting.post_payments([row.pk], now=now)
        email_queue.enqueue_email("invoice-paid", row.invoice_id, tenant_id=row.tenant_id, now=now)


PAYMENTS = _PaymentTransactions()
