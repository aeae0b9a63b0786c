"""Sending money back, as any move: it left the balance when it was asked for, and returns there where nothing went."""

from datetime import datetime

from django.db.models import QuerySet

from billing.domain.stripe_states import REFUNDS
from billing.models import Invoice, PaymentRefund, PaymentStatus, Refund
from billing.services.ledger import posting
from billing.services.moves.moving import BILLING, Moving
from billing.services.payments.trail import record
from ports.payments import Gateway, Outcome, SendBack
from tenants.services.actors import Actor

CAME_BACK = ("failed", "canceled")


class _Refunds(Moving[Refund]):
    name, title, task = "refund", "refund", "billing.refund"

    def rows(self) -> QuerySet[Refund]:
        return Refund.objects.select_related("payment__invoice")

    def ask(self, gateway: Gateway, row: Refund, *, now: datetime) -> Outcome:
        text = f"Refund of invoice {row.payment.invoice}"
        return gateway.refund(
            SendBack(row.pk, row.payment_id, row.minor, row.currency, row.tenant_id, text), now=now
        )

    def lock(self, row: Refund) -> None:
        Invoice.objects.select_for_update().get(pk=row.payment.invoice_id)

    def record(self, what: str, row: Refund, *, actor: Actor, now: datetime, **detail: object) -> None:
        told = {"payment": row.payment_id, "refund": row.pk, "minor": row.minor}
        record(f"refund.{what}", row.payment.invoice, actor=actor, now=now, **told, **detail)

    def declined(self, row: Refund, reason: str, *, now: datetime) -> None:
        posting.unrefunded([row.pk], now=now)

    def book(self, row: Refund, *, now: datetime) -> None:
        """Note what the gateway's own word of it will be, which may come before or after, or never."""
        reference = Refund.objects.values_list("reference", flat=True).get(pk=row.pk)
        told = {"tenant_id": row.tenant_id, "payment_id": row.payment_id, "minor": row.minor, "made_at": now}
        status = {"status": "succeeded", "rank": REFUNDS["succeeded"], "seen_at": now}
        mark, made = PaymentRefund.objects.get_or_create(pk=reference, defaults={**told, **status})
        if not made:
            PaymentRefund.objects.filter(pk=mark.pk, rank__lt=REFUNDS["succeeded"]).update(**status)
        if mark.status in CAME_BACK:  # that was told while this answer was on its way
            self.returned(row, now=now)

    def returned(self, row: Refund, *, now: datetime) -> bool:
        """Put on the balance again what succeeded and the bank did not take after all; tell whether that is new."""
        gone = Refund.objects.filter(pk=row.pk, status=PaymentStatus.SUCCEEDED, returned_at=None)
        if not gone.update(returned_at=now):
            return False
        self.record("return", row, actor=BILLING, now=now)
        posting.unrefunded([row.pk], now=now)
        return True


SENDING = _Refunds()
collect, fall, due = SENDING.collect, SENDING.fall, SENDING.due
