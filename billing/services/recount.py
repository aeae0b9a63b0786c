"""Working a line out once more from the ledger, in Python: what the database charged is not even looked at."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple

from billing.domain import rating as oracle
from billing.domain.periods import Period
from billing.models import BillingPeriod, InvoiceLine, PriceVersion, Quote, RatedCharge
from billing.models.charges import ChargeKind
from broker.domain.states import EndReason, LeaseState, PriceClass
from broker.models import Transition, VolumeStep


class Step(NamedTuple):
    """What a step of the ledger says of its lease; a line has thousands, and a model costs more than its row."""

    lease_id: str
    seq: int
    at: datetime
    after: str
    cause: str
    offering_id: str
    quantity: int
    reason: str


Steps = dict[str, list[Step]]


def months(tenant_id: str) -> dict[int, Period]:
    """Return the tenant's months by key."""
    rows = BillingPeriod.objects.filter(tenant_id=tenant_id).values_list("pk", "span")
    return {pk: period(span.lower, span.upper) for pk, span in rows}


def ledger(leases: Iterable[str]) -> Steps:
    """Return the life of each of these leases, in order."""
    steps: Steps = defaultdict(list)
    rows = Transition.objects.filter(lease_id__in=leases).order_by("lease_id", "seq")
    for row in rows.values_list(*Step._fields):
        steps[row[0]].append(Step(*row))
    return steps


def histories(volumes: Iterable[str], *, sold_since: datetime) -> Steps:
    """Return the life of each of these volumes since storage is sold, as a lease's that is active for its GiB."""
    steps: Steps = defaultdict(list)
    for row in VolumeStep.objects.filter(volume_id__in=list(volumes)).order_by("volume_id", "seq"):
        state = LeaseState.ACTIVE if row.size_gib else LeaseState.RELEASED
        at, none = max(row.at, sold_since), EndReason.NONE.value
        told = Step(row.volume_id, row.seq, at, state, row.cause, row.offering_id, row.size_gib, none)
        steps[row.volume_id].append(told)
    return steps


def recount(
    line: InvoiceLine,
    *,
    steps: Steps,
    months: dict[int, Period],
    of_line: set[int],
    quotes: dict[str, Quote],
) -> dict[str, list[oracle.Charge]]:
    """Rate these leases anew and return, lease by lease, what belongs on the line, whose months are `of_line`.

    `quotes` are those that they cite.
    """
    own = PriceVersion.objects.get(pk=line.price_version_id)
    versions = PriceVersion.objects.paid_by(line.tenant_id).filter(
        currency=own.currency, offering=own.offering_id
    )
    rated = oracle.rate(
        [_step(step) for life in steps.values() for step in life],
        [_price(version) for version in versions],
        {str(key): span for key, span in months.items()},
        promised={lease: _price(quote.price_version) for lease, quote in quotes.items()},
    )
    elsewhere = _elsewhere(line, set(steps), of_line)
    found: defaultdict[str, list[oracle.Charge]] = defaultdict(list)
    for charge in rated.charges:
        key = charge.lease, charge.seq, int(charge.period)
        if charge.version == str(own.pk) and key[2] in of_line and key not in elsewhere:
            if charge.given_back and _was_cut(steps, charge) and key not in _given(line):
                continue  # it was on a final invoice before anybody could know
            found[charge.lease].append(charge)
    return found


def _was_cut(steps: Steps, charge: oracle.Charge) -> bool:
    """Tell whether a stretch that was given back had ended before it was taken back: it may have been charged then."""
    return (
        next(step for step in steps[charge.lease] if step.seq == charge.seq + 1).reason != EndReason.PREEMPTED
    )


def _given(line: InvoiceLine) -> set[tuple[str, int, int]]:
    rows = RatedCharge.objects.billed_in(line.invoice.period_id).filter(
        price_version_id=line.price_version_id,
        kind=ChargeKind.ADJUST,
        correction_id="",
    )
    return set(rows.values_list("lease_id", "seq", "period_id"))


def quotes(leases: Iterable[str]) -> dict[str, Quote]:
    """Return the quotes that these leases cite, by lease."""
    cited = Quote.objects.filter(lease__in=list(leases)).select_related("price_version")
    return {quote.lease_id: quote for quote in cited}


def _step(row: Step) -> oracle.Step:
    return oracle.Step(
        lease=row.lease_id,
        seq=row.seq,
        at=row.at.astimezone(UTC),
        after=LeaseState(row.after),
        offering=row.offering_id,
        quantity=row.quantity,
        price_class=PriceClass.ON_DEMAND,  # an offering has one class: the class is part of what is sold
        taken=row.reason == EndReason.PREEMPTED,
    )


def _price(row: PriceVersion) -> oracle.Price:
    return oracle.Price(
        version=str(row.pk),
        offering=row.offering_id,
        price_class=PriceClass.ON_DEMAND,
        start=row.valid.lower.astimezone(UTC),
        end=row.valid.upper.astimezone(UTC) if row.valid.upper else None,
        nano_per_hour=row.nano_per_hour,
        own=row.tenant_id is not None,
        free_start_s=row.free_start_s,
    )


def _elsewhere(line: InvoiceLine, leases: set[str], of_line: set[int]) -> set[tuple[str, int, int]]:
    """Return what stands on another invoice: late seconds of a closed month, which only the charges know."""
    there = RatedCharge.objects.filter(
        price_version_id=line.price_version_id, period_id__in=of_line, correction_id=""
    )
    rows = there.exclude(billed_period_id=line.invoice.period_id).values_list("lease_id", "seq", "period_id")
    return set(rows.filter(lease_id__in=leases))


def period(start: datetime, end: datetime) -> Period:
    """Return a stretch in UTC, as the domain wants it."""
    return Period(start.astimezone(UTC), end.astimezone(UTC))
