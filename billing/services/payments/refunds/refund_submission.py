"""Refund sending: money left the balance on request, and returns there on failure."""

from datetime import datetime

from django.db.models import QuerySet

from billing.domain.stripe_states import REFUND_RANKS
from billing.models import Invoice, PaymentRefund, PaymentStatus, Refund
from billing.services.ledger import posting
from billing.services.payments.gateway_transactions import GatewayTransactions
from billing.services.payments.payment_audit import record_invoice_event
from ports.payments import GatewayOutcome, GatewayRefund, PaymentGateway
from tenants.services.actors import BILLING, Actor

RETURNED_STATUSES = ("failed", "canceled")


class _RefundTransactions(GatewayTransactions[Refund]):
    name, title, task = "refund", "refund", "billing.refund"

    def rows(self) -> QuerySet[Refund]:
        return Refund.objects.select_related("payment__invoice")

    def send_request(self, gateway: PaymentGateway, row: Refund, *, now: datetime) -> GatewayOutcome:
        text = f"Refund of invoice {row.payment.invoice}"
        return gateway.refund(
            GatewayRefund(row.pk, row.payment_id, row.minor, row.currency, row.tenant_id, text), now=now
        )

    def lock(self, row: Refund) -> None:
        Invoice.objects.select_for_update().get(pk=row.payment.invoice_id)

    def record(self, event: str, row: Refund, *, actor: Actor, now: datetime, **detail: object) -> None:
        subject = {"payment": row.payment_id, "refund": row.pk, "minor": row.minor}
        record_invoice_event(f"refund.{event}", row.payment.invoice, actor=actor, now=now, **subject, **detail)

    def on_decline(self, row: Refund, reason: str, *, now: datetime) -> None:
        posting.reverse_refunds([row.pk], now=now)

    def book(self, row: Refund, *, now: datetime) -> None:
        """Store the refund's expected status at the gateway.

        The gateway's own event about it may come before or after, or never.
        """
        reference = Refund.objects.values_list("reference", flat=True).get(pk=row.pk)
        values = {"tenant_id": row.tenant_id, "payment_id": row.payment_id, "minor": row.minor, "made_at": now}
        status = {"status": "succeeded", "rank": REFUND_RANKS["succeeded"], "seen_at": now}
        mark, made = PaymentRefund.objects.get_or_create(pk=reference, defaults={**values, **status})
        if not made:
            PaymentRefund.objects.filter(pk=mark.pk, rank__lt=REFUND_RANKS["succeeded"]).update(**status)
        if mark.status in RETURNED_STATUSES:  # the event arrived before this answer
            self.returned(row, now=now)

    def returned(self, row: Refund, *, now: datetime) -> bool:
        """Credit the balance for a refund that the bank returned; return whether that is new."""
        gone = Refund.objects.filter(pk=row.pk, status=PaymentStatus.SUCCEEDED, returned_at=None)
        if not gone.update(returned_at=now):
            return False
        self.record("return", row, actor=BILLING, now=now)
        posting.reverse_refunds([row.pk], now=now)
        return True


REFUND_TRANSACTIONS = _RefundTransactions()
