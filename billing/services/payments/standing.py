"""How it stands with the money of an invoice, as a page and a program may want to know."""

from dataclasses import dataclass
from enum import StrEnum

from billing.models import Invoice, InvoiceStatus, Payment, PaymentStatus
from ports import payments


class Standing(StrEnum):
    NOTHING_DUE = "nothing_due"  # a draft, void, or written off
    PAID = "paid"
    PENDING = "pending"  # a payment is under way
    DECLINED = "declined"  # the latest was; another may be tried
    DUE = "due"
    TRANSFER = "transfer"  # due, and nobody collects it here


@dataclass(frozen=True, slots=True)
class Stands:
    """How an invoice stands, and the latest attempt to collect it."""

    how: Standing
    payment: Payment | None = None

    @property
    def payable(self) -> bool:
        """Whether asking for it now makes sense."""
        return self.how in (Standing.DUE, Standing.DECLINED)


def stands(invoice: Invoice) -> Stands:
    """Say how it stands with an invoice's money; one query for a final one."""
    if invoice.status not in (InvoiceStatus.FINALIZED, InvoiceStatus.PAID):
        return Stands(Standing.NOTHING_DUE)
    latest = Payment.objects.filter(invoice=invoice).order_by("-opened_at", "-pk").first()
    if invoice.status == InvoiceStatus.PAID:
        return Stands(Standing.PAID, latest)
    if latest and latest.status == PaymentStatus.PENDING:
        return Stands(Standing.PENDING, latest)
    if payments.gateway() is None:
        return Stands(Standing.TRANSFER, latest)
    return Stands(Standing.DECLINED if latest else Standing.DUE, latest)
