"""Average hourly spend of a tenant over the last days, as a series."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median_low

from billing.domain.money import EXACT_PER_UNIT, half_up
from billing.services.rating import spend

NANO = 10**9
DAYS, STEP = 7, timedelta(hours=4)
RECENT = timedelta(days=1)  # what is compared with the days before it


@dataclass(frozen=True, slots=True)
class SpendRate:
    """Average spend from a moment on for one step, in 10⁻⁹ currency units per hour."""

    since: datetime
    nano_per_hour: int


@dataclass(frozen=True, slots=True)
class SpendRates:
    """The series, oldest first, of equal steps up to now."""

    now: datetime
    steps: tuple[SpendRate, ...]

    @property
    def usual(self) -> int:
        """Return the median rate of earlier days in which something ran."""
        before = [each.nano_per_hour for each in self.steps if each.since < self.now - RECENT and each.nano_per_hour]
        return median_low(before) if before else 0


def read_spend_rates(*, now: datetime) -> SpendRates:
    """Return what the tenant in scope spent per hour in the last week; one query."""
    until = now.replace(microsecond=0)
    count = timedelta(days=DAYS) // STEP
    boundaries = [until - STEP * (count - n) for n in range(count + 1)]
    exact: dict[datetime, int] = defaultdict(int)
    for line in spend.spend_lines(boundaries, until=until):
        exact[line.since] += line.exact_num
    hours = STEP // timedelta(hours=1)
    return SpendRates(
        now, tuple(SpendRate(each, half_up(exact[each] * NANO, EXACT_PER_UNIT * hours)) for each in boundaries[:-1])
    )
