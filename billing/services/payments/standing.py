"""How it stands with the money of an invoice, as a page and a program may want to know."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from billing.domain.collecting import next_unasked
from billing.models import Invoice, InvoiceStatus, Payment, PaymentStatus
from billing.services.disputes import window
from billing.services.payments.collecting import PAYMENTS
from ports import payments


class Standing(StrEnum):
    NOTHING_DUE = "nothing_due"  # a draft, void, or written off
    PAID = "paid"
    PENDING = "pending"  # a payment is under way
    STUCK = "stuck"  # one is, until a person has it asked for again
    DECLINED = "declined"  # the latest was; another may be tried
    DUE = "due"
    TRANSFER = "transfer"  # due, and nobody collects it here


@dataclass(frozen=True, slots=True)
class Stands:
    """How an invoice stands, and every attempt to collect it, the latest first."""

    how: Standing
    unasked: bool = False  # whether it is collected without anybody asking
    disputed: bool = False  # it would be, but for an open dispute
    attempts: Sequence[Payment] = ()

    @property
    def payment(self) -> Payment | None:
        """The attempt that counts: what succeeded or waits, or else the latest that was declined."""
        if self.how is Standing.PAID:  # it may have been settled otherwise, after one that was declined
            return next((each for each in self.attempts if each.status == PaymentStatus.SUCCEEDED), None)
        return self.attempts[0] if self.attempts else None

    @property
    def tried_again_at(self) -> datetime | None:
        """When a declined one is tried again by itself; None where a person has to."""
        if self.how is not Standing.DECLINED or not self.unasked:
            return None
        return next_unasked([(each.opened_at, each.automatic) for each in self.attempts])

    @property
    def payable(self) -> bool:
        """Whether asking for it now makes sense."""
        if self.how is Standing.STUCK:
            return PAYMENTS.asks_here(self.attempts[0])
        return self.how in (Standing.DUE, Standing.DECLINED)


def stands(invoice: Invoice) -> Stands:
    """Say how it stands with an invoice's money; one query for a final one."""
    if invoice.status not in (InvoiceStatus.FINALIZED, InvoiceStatus.PAID):
        return Stands(Standing.NOTHING_DUE)
    attempts = list(Payment.objects.filter(invoice=invoice).order_by("-opened_at", "-pk"))
    if invoice.status == InvoiceStatus.PAID:
        return Stands(Standing.PAID, attempts=attempts)
    if attempts and attempts[0].status == PaymentStatus.PENDING:
        return Stands(Standing.PENDING, attempts=attempts)
    if attempts and attempts[0].status == PaymentStatus.STUCK:
        return Stands(Standing.STUCK, attempts=attempts)
    if payments.gateway() is None:
        return Stands(Standing.TRANSFER, attempts=attempts)
    how = Standing.DECLINED if attempts else Standing.DUE
    disputed = invoice.collected and bool(window.of(invoice))
    return Stands(how, unasked=invoice.collected and not disputed, disputed=disputed, attempts=attempts)
