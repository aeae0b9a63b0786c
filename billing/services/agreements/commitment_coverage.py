"""Daily coverage of a commitment in the current month, to the second.

It is computed from what leases did, not from charges: a running sum shows how many units are
covered, not whose. So it is current to the second, and agrees with the closed month's invoice by an
independent computation.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from billing.domain.periods import midnight
from billing.models import BillingPeriod, Commitment
from billing.services.adjustments.commitment_adjustments import commitment_span
from ports.postgres.sql_statements import query_rows

DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class CoverageDay:
    """A day in the tenant's time zone, or its counted part; unit-seconds."""

    since: datetime
    until: datetime
    covered: int = 0
    beyond: int = 0  # active beyond all commitments to the offering
    unused: int = 0


@dataclass(frozen=True, slots=True)
class CommitmentCoverage:
    """Coverage of the elapsed part of a month in which the commitment holds."""

    commitment: Commitment
    month: str
    days: tuple[CoverageDay, ...]

    @property
    def covered(self) -> int:
        return sum(day.covered for day in self.days)

    @property
    def beyond(self) -> int:
        return sum(day.beyond for day in self.days)

    @property
    def unused(self) -> int:
        return sum(day.unused for day in self.days)

    @property
    def committed(self) -> int:
        return self.covered + self.unused

    @property
    def owed_unused(self) -> int:
        """Cost of the unused units so far, unrounded; over 3600·10⁹."""
        return self.unused * self.commitment.nano_per_hour


def current_coverage(commitment: Commitment, *, now: datetime) -> CommitmentCoverage | None:
    """Return the coverage in the current month so far; None before it begins.

    Call in the tenant's RLS scope.
    """
    month = BillingPeriod.objects.filter(tenant=commitment.tenant_id, span__contains=now).first()
    return coverage_in_month(commitment, month, until=now) if month else None


def coverage_in_month(commitment: Commitment, month: BillingPeriod, *, until: datetime) -> CommitmentCoverage | None:
    """Return the coverage of a month up to a moment; None if there is none."""
    since, ends = commitment_span(commitment, month)
    ends = min(ends, until.replace(microsecond=0))
    if since >= ends:
        return None
    boundaries = _day_boundaries(since, ends, ZoneInfo(month.time_zone))
    rows = query_rows(
        "billing/agreements/commitment_coverage",
        commitment=commitment.pk,
        tenant=commitment.tenant_id,
        offering=commitment.offering_id,
        units=commitment.units,
        period=month.pk,
        until=ends,
        boundaries=boundaries,
    )
    found = {part: sums for part, *sums in rows}
    days = [CoverageDay(start, end, *found[n]) for n, (start, end) in enumerate(pairwise(boundaries), 1)]
    return CommitmentCoverage(commitment, month.label, tuple(days))


def _day_boundaries(since: datetime, until: datetime, zone: ZoneInfo) -> list[datetime]:
    found, day = [since], since.astimezone(zone).date()
    while (at := midnight(day := day + DAY, zone)) < until:
        found.append(at)
    return [*found, until]
