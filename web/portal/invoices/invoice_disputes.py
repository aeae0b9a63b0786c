"""Disputes of an invoice, as its page shows them."""

from dataclasses import dataclass, field
from datetime import date, datetime
from zoneinfo import ZoneInfo

from django.db.models import Q

from billing.domain.disputes import undisputed_due
from billing.models import Dispute, DisputeStatus, Invoice, InvoiceLine
from billing.services.invoicing.credit_notes import CREDITABLE
from billing.services.invoicing.disputes import dispute_outcomes
from billing.services.payments import disputed_amounts
from billing.services.payments.payment_status import InvoicePaymentState, InvoicePaymentStatus

MAX_CLOSED_DISPUTES = 20  # closed disputes shown on the page


@dataclass(frozen=True, slots=True)
class InvoiceDisputes:
    """An invoice's disputes, latest first, and whether its lines can be disputed now."""

    rows: list[tuple[Dispute, str]] = field(default_factory=list)  # with the credit in words
    has_more: bool = False
    disputed_minor: int = 0  # disputed and not decided
    undisputed: int = 0
    awaited: str = ""
    hint: str = ""
    until: date | None = None  # the last day on which a line can be disputed
    may_open: bool = False

    def open_on(self, line: InvoiceLine) -> Dispute | None:
        """Return the open dispute of a line."""
        open_ = (each for each, _ in self.rows if each.status == DisputeStatus.OPEN)
        return next((each for each in open_ if each.line.n == line.n), None)


def read_invoice_disputes(invoice: Invoice, money: InvoicePaymentStatus, *, now: datetime) -> InvoiceDisputes:
    """Return an invoice's disputes; existing ones stay visible when no more can be opened.

    One query; none for a draft.
    """
    if invoice.number is None:
        return InvoiceDisputes()
    until = disputed_amounts.dispute_window_end(invoice)
    of_it = Dispute.objects.filter(invoice=invoice).order_by("-opened_at", "-pk")
    latest = of_it.exclude(status=DisputeStatus.OPEN).values("pk")[: MAX_CLOSED_DISPUTES + 1]
    shown = of_it.filter(Q(status=DisputeStatus.OPEN) | Q(pk__in=latest))
    rows = list(disputed_amounts.with_open_amounts(shown).select_related("line", "credit_note"))
    open_ = [each for each in rows if each.status == DisputeStatus.OPEN]
    over = [each for each in rows if each.status != DisputeStatus.OPEN]
    held = sum(max(each.held, 0) for each in open_)
    paying = money.state in (InvoicePaymentState.PENDING, InvoicePaymentState.STUCK)
    return InvoiceDisputes(
        rows=[
            (each, dispute_outcomes.describe_credit(each.credit_note) if each.credit_note else "")
            for each in [*open_, *over[:MAX_CLOSED_DISPUTES]]
        ],
        has_more=len(over) > MAX_CLOSED_DISPUTES,
        disputed_minor=held,
        undisputed=undisputed_due(invoice.due, [held]),
        awaited=dispute_outcomes.describe_open_dispute(invoice, held, paying=paying) if held else "",
        hint=dispute_outcomes.describe_before_dispute(invoice, paying=paying),
        until=disputed_amounts.last_day_before(until, ZoneInfo(invoice.period.time_zone)) if until else None,
        may_open=until is not None and now < until and invoice.status in CREDITABLE,
    )
