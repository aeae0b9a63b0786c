"""Recompute an invoice line from the ledger of transitions, in Python.

The charges that the database computed are not read.
"""

from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple

from billing.domain import rating as oracle
from billing.domain.periods import Period
from billing.models import BillingPeriod, InvoiceLine, PriceVersion, Quote, RatedCharge
from billing.models.charges import ChargeKind
from broker.domain.lifecycle.states import EndReason, LeaseState, PriceClass
from broker.models import Transition, VolumeSizeChange


class RecountStep(NamedTuple):
    """A transition of a lease; a tuple, because a line may have thousands."""

    lease_id: str
    seq: int
    at: datetime
    after: str
    cause: str
    offering_id: str
    quantity: int
    reason: str


RecountSteps = dict[str, list[RecountStep]]


def tenant_months(tenant_id: str) -> dict[int, Period]:
    """Return the tenant's months by key."""
    rows = BillingPeriod.objects.filter(tenant_id=tenant_id).values_list("pk", "span")
    return {pk: to_period(span.lower, span.upper) for pk, span in rows}


def lease_steps(leases: Iterable[str]) -> RecountSteps:
    """Return the transitions of each of these leases, in order."""
    steps: RecountSteps = defaultdict(list)
    rows = Transition.objects.filter(lease_id__in=leases).order_by("lease_id", "seq")
    for row in rows.values_list(*RecountStep._fields):
        steps[row[0]].append(RecountStep(*row))
    return steps


def volume_steps(volumes: Iterable[str], *, sold_since: datetime) -> RecountSteps:
    """Return each volume's history since storage is sold, in the form of transitions.

    A volume counts as a lease that is active for its size in GiB.
    """
    steps: RecountSteps = defaultdict(list)
    for row in VolumeSizeChange.objects.filter(volume_id__in=list(volumes)).order_by("volume_id", "seq"):
        state = LeaseState.ACTIVE if row.size_gib else LeaseState.RELEASED
        at, none = max(row.at, sold_since), EndReason.NONE.value
        step = RecountStep(row.volume_id, row.seq, at, state, row.cause, row.offering_id, row.size_gib, none)
        steps[row.volume_id].append(step)
    return steps


def recount_line(
    line: InvoiceLine, *, steps: RecountSteps, months: dict[int, Period], of_line: set[int], quotes: dict[str, Quote]
) -> dict[str, list[oracle.ReferenceCharge]]:
    """Rate these leases again; return by lease the charges that belong on the line.

    The line's months are `of_line`; `quotes_of` are those that the leases cite.
    """
    own = PriceVersion.objects.get(pk=line.price_version_id)
    versions = PriceVersion.objects.paid_by(line.tenant_id).filter(currency=own.currency, offering=own.offering_id)
    rated = oracle.rate_usage(
        [_to_transition(step) for life in steps.values() for step in life],
        [_to_rated_price(version) for version in versions],
        {str(key): span for key, span in months.items()},
        promised={lease: _to_rated_price(q.price_version) for lease, q in quotes.items() if q.is_ceiling},
        fixed={lease: _to_rated_price(q.price_version) for lease, q in quotes.items() if not q.is_ceiling},
    )
    elsewhere = _charges_elsewhere(line, set(steps), of_line)
    found: defaultdict[str, list[oracle.ReferenceCharge]] = defaultdict(list)
    for charge in rated.charges:
        key = charge.lease, charge.seq, int(charge.period)
        if charge.version == str(own.pk) and key[2] in of_line and key not in elsewhere:
            if charge.given_back and _ended_before_preemption(steps, charge) and key not in _reversals_on(line):
                continue  # it was already on a final invoice
            found[charge.lease].append(charge)
    return found


def _ended_before_preemption(steps: RecountSteps, charge: oracle.ReferenceCharge) -> bool:
    """Return whether a reversed interval had ended before the preemption.

    It may have been charged then.
    """
    return next(step for step in steps[charge.lease] if step.seq == charge.seq + 1).reason != EndReason.PREEMPTED


def _reversals_on(line: InvoiceLine) -> set[tuple[str, int, int]]:
    rows = RatedCharge.objects.billed_in(line.invoice.period_id).filter(
        price_version_id=line.price_version_id, kind=ChargeKind.ADJUST, correction_id=""
    )
    return set(rows.values_list("lease_id", "seq", "period_id"))


def quotes_of(leases: Iterable[str]) -> dict[str, Quote]:
    """Return the quotes that these leases cite, by lease."""
    cited = Quote.objects.filter(lease__in=list(leases)).select_related("price_version")
    return {quote.lease_id: quote for quote in cited}


def _to_transition(row: RecountStep) -> oracle.RatedTransition:
    return oracle.RatedTransition(
        lease=row.lease_id,
        seq=row.seq,
        at=row.at.astimezone(UTC),
        after=LeaseState(row.after),
        offering=row.offering_id,
        quantity=row.quantity,
        price_class=PriceClass.ON_DEMAND,  # an offering has one class, so the class does not matter here
        taken=row.reason == EndReason.PREEMPTED,
    )


def _to_rated_price(row: PriceVersion) -> oracle.RatedPrice:
    return oracle.RatedPrice(
        version=str(row.pk),
        offering=row.offering_id,
        price_class=PriceClass.ON_DEMAND,
        start=row.valid.lower.astimezone(UTC),
        end=row.valid.upper.astimezone(UTC) if row.valid.upper else None,
        nano_per_hour=row.nano_per_hour,
        own=row.tenant_id is not None,
        free_start_s=row.free_start_s,
    )


def _charges_elsewhere(line: InvoiceLine, leases: set[str], of_line: set[int]) -> set[tuple[str, int, int]]:
    """Return charges on other invoices: late seconds of a closed month.

    Only the charges know of them.
    """
    there = RatedCharge.objects.filter(price_version_id=line.price_version_id, period_id__in=of_line, correction_id="")
    rows = there.exclude(billed_period_id=line.invoice.period_id).values_list("lease_id", "seq", "period_id")
    return set(rows.filter(lease_id__in=leases))


def to_period(start: datetime, end: datetime) -> Period:
    """Return an interval in UTC, as the domain expects it."""
    return Period(start.astimezone(UTC), end.astimezone(UTC))
