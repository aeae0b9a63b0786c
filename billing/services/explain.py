"""From a line of an invoice down to its causes: leases, what they were doing when, at which price, by which rule.

The amount is worked out once more from the ledger, in Python and without the charges, and must come out the same.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import NamedTuple

from billing.domain import explain as domain
from billing.domain import rating as oracle
from billing.domain.explain import Explanation, Piece
from billing.domain.money import exponent_of, to_minor
from billing.domain.periods import Period
from billing.models import CorrectionPart, Invoice, InvoiceLine, MonthCharge, PriceVersion, Quote, RatedCharge
from billing.services import recount
from billing.services.corrections import reading
from billing.services.month_charges import reckoning
from billing.services.prices import Price, priced
from billing.services.recount import Step, period
from billing.services.storage.sale import sold_since
from broker.domain.lifecycle import BILLABLE
from broker.domain.states import LeaseState
from broker.models import Lease, Offering, Volume

FREE = {
    LeaseState.REQUESTED: "not charged: it was only asked for",
    LeaseState.QUEUED: "not charged: it waited",
    LeaseState.PROVISIONING: "not charged: it was being made ready",
    LeaseState.STOPPING: "not charged: a slow stop is ours",
    LeaseState.STOPPED: "not charged: it was stopped",
    LeaseState.RELEASING: "not charged: a slow end is ours",
    LeaseState.RELEASED: "not charged: it was over",
    LeaseState.FAILED: "not charged: it had failed",
}
GIVEN_BACK = "given back: it was taken back for others soon after its start"


class Charged(NamedTuple):
    """What is known of a charge of the line without looking at its amount."""

    lease_id: str
    period_id: int
    s: datetime
    e: datetime
    unit_seconds: int
    correction_id: str


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of a lease's life within the months of the line."""

    start: datetime
    end: datetime
    state: LeaseState
    seconds: int
    quantity: int
    charged: bool  # on this line
    why: str  # of what is not charged here, or what led into this state

    @property
    def unit_seconds(self) -> int:
        return self.seconds * self.quantity


@dataclass(frozen=True, slots=True)
class LeaseUse:
    """One lease's part in a line."""

    lease: str
    name: str
    unit_seconds: int
    exact_num: int
    windows: tuple[Window, ...]
    quote: Quote | None = None  # that it cites

    @property
    def fixed(self) -> str:
        """Why it has this price when the list may have said another; empty where the list decides."""
        if self.quote is None:
            return ""
        return f"price fixed by quote {self.quote.pk} of {self.quote.made_at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


@dataclass(frozen=True, slots=True)
class Corrected:
    """What a correction changed on a line: exact, and by how many seconds."""

    correction: str
    label: str
    exact_num: int
    unit_seconds: int
    kind: str = "correction"


@dataclass(frozen=True, slots=True)
class Explained:
    """Everything behind one line. `leases` may be cut short; `leases_total` says how many there are.

    `month` is what the month took off it, in order; a line that the month adds is of nothing else.
    """

    line: InvoiceLine
    invoice: Invoice
    recomputed_exact: int
    recomputed_minor: int
    offering: Offering | None = None
    price: Price | None = None
    leases: tuple[LeaseUse, ...] = ()
    leases_total: int = 0
    rule: Explanation | None = None
    month: tuple[MonthCharge, ...] = ()
    corrected: tuple[Corrected, ...] = ()

    @property
    def what(self) -> str:
        """What it charges for, in words."""
        return self.offering.label if self.offering else str(self.line.get_kind_display())

    @property
    def recomputed_equal(self) -> bool:
        return (self.recomputed_exact, self.recomputed_minor) == (int(self.line.exact_num), self.line.minor)


def explain(line: InvoiceLine, *, most: int | None = None) -> Explained:
    """Tell how a line came about, its first `most` leases in detail. Runs behind the tenant's wall."""
    invoice = line.invoice
    key = line.project_id, line.offering_id, line.price_version_id
    month = [charge for charge in reckoning.of(invoice) if charge.line == key] if line.month_num else []
    carried = reckoning.by_line(reckoning.reckoned(invoice)).get(key, 0) if line.month_num else 0
    if not line.is_usage:
        minor = to_minor(carried, exponent_of(invoice.currency))
        return Explained(line, invoice, recomputed_exact=carried, recomputed_minor=minor, month=tuple(month))
    version = PriceVersion.objects.get(pk=line.price_version_id)
    charges = _charges(line)
    leases = sorted({charge.lease_id for charge in charges})
    of_line = {charge.period_id for charge in charges}
    quotes = recount.quotes(leases)
    offering = Offering.objects.get(pk=line.offering_id)
    months, steps = recount.months(invoice.tenant_id), _steps(offering, leases)
    counted = recount.recount(line, steps=steps, months=months, of_line=of_line, quotes=quotes)
    parts = reading.on_line(line)
    carried += sum(reading.recounted(part) for part in parts)
    exact = carried + sum(charge.exact_num for found in counted.values() for charge in found)
    shown = leases[:most]
    kept = Volume if offering.is_storage else Lease
    names = dict(kept.objects.filter(pk__in=shown).values_list("pk", "name"))
    spans = [months[key] for key in sorted(of_line)]
    return Explained(
        line=line,
        invoice=invoice,
        offering=offering,
        price=priced(version),
        leases=tuple(
            replace(
                _use(lease, names[lease], steps[lease], counted.get(lease, ()), spans),
                quote=quotes.get(lease),
            )
            for lease in shown
        ),
        leases_total=len(leases),
        rule=domain.explain(
            [_piece(charge) for charge in charges if not charge.correction_id],
            nano_per_hour=version.nano_per_hour,
            currency=invoice.currency,
        ),
        recomputed_exact=exact,
        recomputed_minor=to_minor(exact, exponent_of(invoice.currency)),
        month=tuple(month),
        corrected=tuple(_corrected(part) for part in parts),
    )


def _corrected(part: CorrectionPart) -> Corrected:
    correction = part.share.correction
    when = f"{part.s.astimezone(UTC):%d %b %H:%M:%S} to {part.e.astimezone(UTC):%d %b %H:%M:%S} UTC"
    return Corrected(
        correction.pk, f"corrected, {when}: {correction.reason}", int(part.exact_num), part.unit_seconds
    )


def _steps(offering: Offering, keys: list[str]) -> recount.Steps:
    """Return what leases, or volumes, did and when."""
    since = sold_since() if offering.is_storage else None
    return recount.ledger(keys) if since is None else recount.histories(keys, sold_since=since)


def _charges(line: InvoiceLine) -> list[Charged]:
    rows = RatedCharge.objects.billed_in(line.invoice.period_id).filter(
        project_id=line.project_id,
        offering_id=line.offering_id,
        price_version_id=line.price_version_id,
    )
    return [Charged(*row) for row in rows.order_by("lease_id", "s").values_list(*Charged._fields)]


def _use(
    lease: str,
    name: str,
    steps: Sequence[Step],
    charges: Sequence[oracle.Charge],
    spans: Sequence[Period],
) -> LeaseUse:
    return LeaseUse(
        lease=lease,
        name=name,
        unit_seconds=sum(charge.unit_seconds for charge in charges),
        exact_num=sum(charge.exact_num for charge in charges),
        windows=tuple(
            window
            for begun, ended in pairwise(steps)
            for span in spans
            for window in _windows(begun, ended.at, charges, span)
        ),
    )


def _windows(
    begun: Step,
    end: datetime,
    charges: Sequence[oracle.Charge],
    span: Period,
) -> Iterator[Window]:
    state, start = LeaseState(begun.after), begun.at.astimezone(UTC)
    end = end.astimezone(UTC)
    shared = period(start, end).intersect(span) if start < end else None
    if shared is None:
        return
    if state not in BILLABLE:
        yield _window(shared, state, begun.quantity, charged=False, why=FREE[state])
        return
    cursor = shared.start
    given = {(charge.seq, charge.span) for charge in charges if charge.given_back}
    for charge in charges:
        if not charge.given_back and charge.seq == begun.seq and charge.span.start in shared:
            if cursor < charge.span.start:
                yield _elsewhere(Period(cursor, charge.span.start), begun)
            back = (charge.seq, charge.span) in given
            why = GIVEN_BACK if back else begun.cause
            yield _window(charge.span, state, begun.quantity, charged=not back, why=why)
            cursor = charge.span.end
    if cursor < shared.end:
        yield _elsewhere(Period(cursor, shared.end), begun)


def _elsewhere(span: Period, begun: Step) -> Window:
    why = "charged at another price, on another line"
    return _window(span, LeaseState(begun.after), begun.quantity, charged=False, why=why)


def _window(span: Period, state: LeaseState, quantity: int, *, charged: bool, why: str) -> Window:
    return Window(span.start, span.end, state, span.seconds, quantity, charged, why)


def _piece(charge: Charged) -> Piece:
    span = period(charge.s, charge.e)
    return Piece(span, charge.unit_seconds // span.seconds)
