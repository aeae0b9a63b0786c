"""How much of a commitment is used, day by day, to the second: for pages and calls, while the month goes on.

It looks at what leases did and not at charges, and finds how many units are covered by a running sum, not whose: so it
is as fresh as the clock, and says the same as a closed month's invoice by another way.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

from django.db import connection

from billing.domain.periods import midnight
from billing.models import BillingPeriod, Commitment
from billing.services.month_charges.committing import span_in
from billing.services.statements import statement

DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Day:
    """A day of the tenant's time zone, or the part of it that counts; unit-seconds."""

    since: datetime
    until: datetime
    covered: int = 0
    beyond: int = 0  # active, and more than was committed to
    unused: int = 0


@dataclass(frozen=True, slots=True)
class Coverage:
    """What of a month has passed, as far as the commitment holds in it."""

    agreed: Commitment
    month: str
    days: tuple[Day, ...]

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
        """What nobody used comes to so far, before it is rounded; over 3600·10⁹."""
        return self.unused * self.agreed.nano_per_hour


def of(agreed: Commitment, *, now: datetime) -> Coverage | None:
    """Return what it covered in the present month so far; None where it does not hold in any second of that yet.

    Runs behind the tenant's wall.
    """
    month = BillingPeriod.objects.filter(tenant=agreed.tenant_id, span__contains=now).first()
    return within(agreed, month, until=now) if month else None


def within(agreed: Commitment, month: BillingPeriod, *, until: datetime) -> Coverage | None:
    """Return what it covered in a month up to a moment; None where it does not hold in any second of that."""
    since, ends = span_in(agreed, month)
    ends = min(ends, until.replace(microsecond=0))
    if since >= ends:
        return None
    borders = _borders(since, ends, ZoneInfo(month.time_zone))
    asked: dict[str, Any] = {
        "tenant": agreed.tenant_id,
        "offering": agreed.offering_id,
        "units": agreed.units,
        "period": month.pk,
        "until": ends,
        "borders": borders,
    }
    with connection.cursor() as cursor:
        cursor.execute(statement("coverage"), asked)
        found = {part: sums for part, *sums in cursor.fetchall()}
    days = [Day(start, end, *found[n]) for n, (start, end) in enumerate(pairwise(borders), 1)]
    return Coverage(agreed, month.label, tuple(days))


def _borders(since: datetime, until: datetime, zone: ZoneInfo) -> list[datetime]:
    found, day = [since], since.astimezone(zone).date()
    while (at := midnight(day := day + DAY, zone)) < until:
        found.append(at)
    return [*found, until]
