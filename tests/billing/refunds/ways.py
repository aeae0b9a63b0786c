"""Payments that succeeded, given back in part, and what of that is sent back to the card."""

from datetime import datetime

from billing.models import Invoice, Payment, PaymentStatus, Refund, SimulatedRefund
from billing.services.ledger import books
from billing.services.refunds import collecting, opening
from tenants.services.walls import as_tenant
from tests.billing.credits.notes import credit, month_of_two_lines
from tests.billing.payments.bills import MIRA, NOW, collect, pay

WHY = "charged twice elsewhere"


def paid(*, credited: int = 120) -> Invoice:
    """Return a paid invoice of 3.05, of which so much was given back to the balance."""
    invoice = month_of_two_lines()
    collect(pay(invoice))
    if credited:
        credit(invoice, {1: credited})
    return invoice


def payment(invoice: Invoice) -> Payment:
    with as_tenant(invoice.tenant_id):
        rows = Payment.objects.select_related("invoice", "tenant")
        return rows.get(invoice=invoice, status=PaymentStatus.SUCCEEDED)


def send_back(invoice: Invoice, minor: int, *, seen: int = 0, why: str = WHY, now: datetime = NOW) -> Refund:
    """Ask for a refund, as operators do."""
    return opening.refund(payment(invoice), minor=minor, seen=seen, why=why, actor=MIRA, now=now)


def work(refund: Refund, *, now: datetime = NOW) -> Refund:
    """Let a worker look at it, and return it as it is then."""
    collecting.collect(refund.pk, refund.tenant_id, now=now)
    return fresh(refund)


def fresh(refund: Refund) -> Refund:
    with as_tenant(refund.tenant_id):
        return Refund.objects.select_related("payment__invoice").get(pk=refund.pk)


def every(invoice: Invoice) -> list[Refund]:
    with as_tenant(invoice.tenant_id):
        return list(Refund.objects.order_by("opened_at", "pk"))


def balance(invoice: Invoice) -> int:
    with as_tenant(invoice.tenant_id):
        return books.balance(invoice.tenant_id, invoice.currency)


def sent(invoice: Invoice) -> list[int]:
    """Return what the gateway sent back."""
    rows = SimulatedRefund.objects.filter(charge__payer=invoice.tenant_id)
    return list(rows.order_by("key").values_list("minor", flat=True))
