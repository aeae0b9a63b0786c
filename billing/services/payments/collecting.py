"""Taking the money of a payment, as of any move: with it its invoice is paid, and stands so in the books."""

from datetime import datetime

from django.db.models import QuerySet

from billing.models import Invoice, InvoiceStatus, Payment
from billing.services.ledger import posting
from billing.services.moves.moving import Moving
from billing.services.payments.asking import charge_of
from billing.services.payments.trail import record
from billing.services.post import queue
from ports.payments import Gateway, Outcome
from tenants.services.actors import Actor


class _Payments(Moving[Payment]):
    name, title, task = "payment", "payment", "billing.collect"

    def rows(self) -> QuerySet[Payment]:
        return Payment.objects.select_related("invoice")

    def ask(self, gateway: Gateway, row: Payment, *, now: datetime) -> Outcome:
        charge = charge_of(row)
        return gateway.withdraw(charge, now=now) if row.untaken else gateway.charge(charge, now=now)

    def lock(self, row: Payment) -> None:
        # The invoice first, as whoever opens a payment does: two orders of locks would wait for each other.
        Invoice.objects.select_for_update().get(pk=row.invoice_id)

    def record(self, what: str, row: Payment, *, actor: Actor, now: datetime, **detail: object) -> None:
        action = "invoice.pay" if what == "succeed" else f"payment.{what}"
        record(action, row.invoice, actor=actor, now=now, payment=row.pk, **detail)

    def declined(self, row: Payment, reason: str, *, now: datetime) -> None:
        if not row.untaken:  # else operators said so, and nobody's card failed
            queue.put("payment-failed", row.pk, tenant_id=row.tenant_id, now=now)

    def book(self, row: Payment, *, now: datetime) -> None:
        Invoice.objects.filter(pk=row.invoice_id).update(status=InvoiceStatus.PAID, paid_at=now)
        posting.paid([row.pk], now=now)
        queue.put("invoice-paid", row.invoice_id, tenant_id=row.tenant_id, now=now)


PAYMENTS = _Payments()
collect, fall, due = PAYMENTS.collect, PAYMENTS.fall, PAYMENTS.due
