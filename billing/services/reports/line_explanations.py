"""Explain an invoice line: its leases, their states over time, price and rounding rule.

The amount is computed again from the ledger of transitions, in Python and without the charges, and
must be equal.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import NamedTuple

from django.db.models import Exists, OuterRef

from billing.domain import line_explanations as domain
from billing.domain import rating as oracle
from billing.domain.line_explanations import LineExplanation, UsagePiece
from billing.domain.money import exponent_of, to_minor
from billing.domain.periods import Period
from billing.models import (
    CorrectedInterval,
    Invoice,
    InvoiceAdjustment,
    InvoiceLine,
    InvoiceStatus,
    PriceVersion,
    Quote,
    RatedCharge,
)
from billing.services.adjustments import month_adjustments
from billing.services.catalogue.price_list import OfferingPrice, to_price
from billing.services.invoicing.corrections import corrected_charges
from billing.services.rating import cancelled_charges, recount
from billing.services.rating.recount import RecountStep, to_period
from broker.domain.lifecycle.lease_transitions import BILLABLE_STATES
from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease, Offering, Volume

UNCHARGED_REASONS = {
    LeaseState.REQUESTED: "not charged: requested",
    LeaseState.QUEUED: "not charged: queued",
    LeaseState.PROVISIONING: "not charged: starting",
    LeaseState.STOPPING: "not charged: stopping",
    LeaseState.STOPPED: "not charged: stopped",
    LeaseState.RELEASING: "not charged: releasing",
    LeaseState.RELEASED: "not charged: ended",
    LeaseState.FAILED: "not charged: failed",
}
REVERSED_REASON = "refunded: reclaimed soon after its start"


class LineCharge(NamedTuple):
    """A charge of the line, without its amount."""

    lease_id: str
    period_id: int
    s: datetime
    e: datetime
    unit_seconds: int
    correction_id: str


@dataclass(frozen=True, slots=True)
class UsageWindow:
    """A stretch of a lease's life within the months of the line."""

    start: datetime
    end: datetime
    state: LeaseState
    seconds: int
    quantity: int
    charged: bool  # on this line
    why: str  # why it is not charged here, or what caused this state

    @property
    def unit_seconds(self) -> int:
        return self.seconds * self.quantity


@dataclass(frozen=True, slots=True)
class LeaseExplanation:
    """One lease's share of a line."""

    lease: str
    name: str
    unit_seconds: int
    exact_num: int
    windows: tuple[UsageWindow, ...]
    quote: Quote | None = None  # that it cites

    @property
    def fixed(self) -> str:
        """Why its price may differ from the list price; empty if it does not."""
        if self.quote is None:
            return ""
        word = "capped" if self.quote.is_ceiling else "fixed"
        return f"price {word} by quote {self.quote.pk} of {self.quote.made_at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


@dataclass(frozen=True, slots=True)
class CorrectionEffect:
    """Effect of a correction on a line: exact amount and seconds."""

    correction: str
    label: str
    exact_num: int
    unit_seconds: int
    kind: str = "correction"


@dataclass(frozen=True, slots=True)
class ExplainedLine:
    """Everything behind one line; `leases` may be truncated, `leases_total` counts all.

    `month` holds the adjustments of the line, in order; a line that the month added consists of them
    alone.
    """

    line: InvoiceLine
    invoice: Invoice
    recomputed_exact: int
    recomputed_minor: int
    offering: Offering | None = None
    price: OfferingPrice | None = None
    leases: tuple[LeaseExplanation, ...] = ()
    leases_total: int = 0
    rule: LineExplanation | None = None
    month: tuple[InvoiceAdjustment, ...] = ()
    corrected: tuple[CorrectionEffect, ...] = ()

    @property
    def title(self) -> str:
        """What the line charges for, in words."""
        return self.offering.label if self.offering else str(self.line.get_kind_display())

    @property
    def recomputed_equal(self) -> bool:
        return (self.recomputed_exact, self.recomputed_minor) == (int(self.line.exact_num), self.line.minor)


def explain_invoice_line(line: InvoiceLine, *, most: int | None = None) -> ExplainedLine:
    """Explain how a line came about, with its first `most` leases in detail.

    Call in the tenant's RLS scope.
    """
    invoice = line.invoice
    key = line.project_id, line.offering_id, line.price_version_id
    month = (
        [charge for charge in month_adjustments.adjustments_of(invoice) if charge.line == key] if line.month_num else []
    )
    carried = (
        month_adjustments.adjustment_by_line(month_adjustments.compute_adjustments(invoice)).get(key, 0)
        if line.month_num
        else 0
    )
    if not line.is_usage:
        minor = to_minor(carried, exponent_of(invoice.currency))
        return ExplainedLine(line, invoice, recomputed_exact=carried, recomputed_minor=minor, month=tuple(month))
    version = PriceVersion.objects.get(pk=line.price_version_id)
    charges = _line_charges(line)
    leases = sorted({charge.lease_id for charge in charges})
    of_line = {charge.period_id for charge in charges}
    quotes = recount.quotes_of(leases)
    offering = Offering.objects.get(pk=line.offering_id)
    months, steps = recount.tenant_months(invoice.tenant_id), _read_steps(offering, leases)
    counted = recount.recount_line(line, steps=steps, months=months, of_line=of_line, quotes=quotes)
    parts = corrected_charges.corrections_on_line(line)
    carried += sum(corrected_charges.recompute_amount(part) for part in parts)
    exact = carried + sum(charge.exact_num for found in counted.values() for charge in found)
    shown = leases[:most]
    kept = Volume if offering.is_storage else Lease
    names = dict(kept.objects.filter(pk__in=shown).values_list("pk", "name"))
    spans = [months[key] for key in sorted(of_line)]
    return ExplainedLine(
        line=line,
        invoice=invoice,
        offering=offering,
        price=to_price(version),
        leases=tuple(
            replace(
                _explain_lease(lease, names[lease], steps[lease], counted.get(lease, ()), spans),
                quote=quotes.get(lease),
            )
            for lease in shown
        ),
        leases_total=len(leases),
        rule=domain.explain_line(
            [_usage_piece(charge) for charge in charges if not charge.correction_id],
            nano_per_hour=version.nano_per_hour,
            currency=invoice.currency,
        ),
        recomputed_exact=exact,
        recomputed_minor=to_minor(exact, exponent_of(invoice.currency)),
        month=tuple(month),
        corrected=tuple(_correction_effect(part) for part in parts),
    )


def find_line_of_lease(lease_id: str) -> InvoiceLine | None:
    """Return the latest invoice line that charges a lease; one query.

    Call in the tenant's RLS scope.
    """
    charges = RatedCharge.objects.filter(
        lease_id=lease_id,
        billed_period_id=OuterRef("invoice__period"),
        project_id=OuterRef("project_id"),
        offering_id=OuterRef("offering_id"),
        price_version_id=OuterRef("price_version_id"),
    )
    lines = InvoiceLine.objects.filter(Exists(charges)).exclude(invoice__status=InvoiceStatus.VOID)
    return lines.order_by("-invoice__period__span", "-n").first()


def _correction_effect(part: CorrectedInterval) -> CorrectionEffect:
    correction = part.share.correction
    when = f"{part.s.astimezone(UTC):%d %b %H:%M:%S} to {part.e.astimezone(UTC):%d %b %H:%M:%S} UTC"
    return CorrectionEffect(
        correction.pk, f"corrected, {when}: {correction.reason}", int(part.exact_num), part.unit_seconds
    )


def _read_steps(offering: Offering, keys: list[str]) -> recount.RecountSteps:
    """Return the transitions of leases, or the history of volumes."""
    since = PriceVersion.objects.storage_sold_since() if offering.is_storage else None
    return recount.lease_steps(keys) if since is None else recount.volume_steps(keys, sold_since=since)


def _line_charges(line: InvoiceLine) -> list[LineCharge]:
    rows = RatedCharge.objects.billed_in(line.invoice.period_id).filter(
        project_id=line.project_id, offering_id=line.offering_id, price_version_id=line.price_version_id
    )
    rows = rows.exclude(correction_id__in=cancelled_charges.later_corrections(line.invoice))
    return [LineCharge(*row) for row in rows.order_by("lease_id", "s").values_list(*LineCharge._fields)]


def _explain_lease(
    lease: str,
    name: str,
    steps: Sequence[RecountStep],
    charges: Sequence[oracle.ReferenceCharge],
    spans: Sequence[Period],
) -> LeaseExplanation:
    return LeaseExplanation(
        lease=lease,
        name=name,
        unit_seconds=sum(charge.unit_seconds for charge in charges),
        exact_num=sum(charge.exact_num for charge in charges),
        windows=tuple(
            window
            for begun, ended in pairwise(steps)
            for span in spans
            for window in _usage_windows(begun, ended.at, charges, span)
        ),
    )


def _usage_windows(
    begun: RecountStep, end: datetime, charges: Sequence[oracle.ReferenceCharge], span: Period
) -> Iterator[UsageWindow]:
    state, start = LeaseState(begun.after), begun.at.astimezone(UTC)
    end = end.astimezone(UTC)
    shared = to_period(start, end).intersect(span) if start < end else None
    if shared is None:
        return
    if state not in BILLABLE_STATES:
        yield _window(shared, state, begun.quantity, charged=False, why=UNCHARGED_REASONS[state])
        return
    cursor = shared.start
    given = {(charge.seq, charge.span) for charge in charges if charge.given_back}
    for charge in charges:
        if not charge.given_back and charge.seq == begun.seq and charge.span.start in shared:
            if cursor < charge.span.start:
                yield _charged_elsewhere(Period(cursor, charge.span.start), begun)
            back = (charge.seq, charge.span) in given
            why = REVERSED_REASON if back else begun.cause
            yield _window(charge.span, state, begun.quantity, charged=not back, why=why)
            cursor = charge.span.end
    if cursor < shared.end:
        yield _charged_elsewhere(Period(cursor, shared.end), begun)


def _charged_elsewhere(span: Period, begun: RecountStep) -> UsageWindow:
    why = "charged at another price, on another line"
    return _window(span, LeaseState(begun.after), begun.quantity, charged=False, why=why)


def _window(span: Period, state: LeaseState, quantity: int, *, charged: bool, why: str) -> UsageWindow:
    return UsageWindow(span.start, span.end, state, span.seconds, quantity, charged, why)


def _usage_piece(charge: LineCharge) -> UsagePiece:
    span = to_period(charge.s, charge.e)
    return UsagePiece(span, charge.unit_seconds // span.seconds)
