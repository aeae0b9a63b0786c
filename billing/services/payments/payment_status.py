"""Payment status of an invoice, for pages and the API."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from billing.domain.payment_retries import next_auto_retry
from billing.models import Invoice, InvoiceStatus, Payment, PaymentStatus
from billing.models.invoices import OPEN_STATUSES
from billing.services.payments import disputed_amounts
from billing.services.payments.payment_collection import PAYMENTS
from ports import payments


class InvoicePaymentState(StrEnum):
    NOTHING_DUE = "nothing_due"  # a draft, void, or written off
    PAID = "paid"
    PENDING = "pending"  # a payment is pending
    STUCK = "stuck"  # a payment waits until a person retries it
    DECLINED = "declined"  # the latest payment was; another may be tried
    DUE = "due"
    TRANSFER = "transfer"  # due, and no gateway is set


@dataclass(frozen=True, slots=True)
class InvoicePaymentStatus:
    """Payment status of an invoice, and all attempts, the latest first."""

    state: InvoicePaymentState
    automatic: bool = False  # whether it is collected automatically
    disputed: bool = False  # not collected automatically because of an open dispute
    attempts: Sequence[Payment] = ()

    @property
    def payment(self) -> Payment | None:
        """The attempt that counts: a successful or pending one, or else the latest."""
        if self.state is InvoicePaymentState.PAID:  # it may have been settled without a payment, after a declined one
            return next((each for each in self.attempts if each.status == PaymentStatus.SUCCEEDED), None)
        return self.attempts[0] if self.attempts else None

    @property
    def next_retry_at(self) -> datetime | None:
        """When a declined payment is retried automatically; None if it is not."""
        if self.state is not InvoicePaymentState.DECLINED or not self.automatic:
            return None
        return next_auto_retry([(each.opened_at, each.automatic) for each in self.attempts])

    @property
    def payable(self) -> bool:
        """Whether requesting a payment now makes sense."""
        if self.state is InvoicePaymentState.STUCK:
            return PAYMENTS.uses_current_gateway(self.attempts[0])
        return self.state in (InvoicePaymentState.DUE, InvoicePaymentState.DECLINED)


def payment_status(invoice: Invoice) -> InvoicePaymentStatus:
    """Return an invoice's payment status; one query for a final invoice."""
    if invoice.status not in (*OPEN_STATUSES, InvoiceStatus.PAID):
        return InvoicePaymentStatus(InvoicePaymentState.NOTHING_DUE)
    attempts = list(Payment.objects.filter(invoice=invoice).order_by("-opened_at", "-pk"))
    if invoice.status == InvoiceStatus.PAID:
        return InvoicePaymentStatus(InvoicePaymentState.PAID, attempts=attempts)
    if attempts and attempts[0].status == PaymentStatus.PENDING:
        return InvoicePaymentStatus(InvoicePaymentState.PENDING, attempts=attempts)
    if attempts and attempts[0].status == PaymentStatus.STUCK:
        return InvoicePaymentStatus(InvoicePaymentState.STUCK, attempts=attempts)
    if payments.gateway() is None:
        return InvoicePaymentStatus(InvoicePaymentState.TRANSFER, attempts=attempts)
    state = InvoicePaymentState.DECLINED if attempts else InvoicePaymentState.DUE
    disputed = invoice.collected and bool(disputed_amounts.open_disputes_of(invoice))
    automatic = invoice.collected and not disputed
    return InvoicePaymentStatus(state, automatic=automatic, disputed=disputed, attempts=attempts)
