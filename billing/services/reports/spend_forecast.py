"""Expected cost of the month if usage goes on as in the last weeks.

Call in the tenant's RLS scope.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from fractions import Fraction
from zoneinfo import ZoneInfo

from billing.domain.periods import midnight, month_of
from billing.domain.spend_forecast import MAX_DAYS, ExpectedCost, WeeklyPattern
from billing.services.rating import spend
from tenants.models import Tenant

SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class SpendForecastDay:
    """A future local day, or the rest of today; amounts over 3600·10⁹."""

    day: date
    cost: ExpectedCost
    month_by_then: ExpectedCost  # including the month's cost so far


@dataclass(frozen=True, slots=True)
class SpendForecast:
    """Forecast of the month's remaining days, today's rest first; never empty."""

    days: tuple[SpendForecastDay, ...]

    @property
    def month(self) -> ExpectedCost:
        """The expected cost of the whole month."""
        return self.days[-1].month_by_then


def forecast_spend(tenant: Tenant, *, now: datetime, projects: Iterable[str] | None = None) -> SpendForecast | None:
    """Forecast the rest of a tenant's month for projects (all, unless named).

    Returns None until there are two weeks of usage. One query. Running leases do not influence the
    expected cost: they may end tonight and others may begin tomorrow, as before. What they cost if they
    go on is `spend.spend_by_month_end`.
    """
    zone, month = ZoneInfo(tenant.time_zone), month_of(tenant.time_zone, now)
    today = now.astimezone(zone).date()
    since = min(month.start.astimezone(zone).date(), today - timedelta(days=MAX_DAYS))
    begins = [midnight(since + timedelta(days=n), zone) for n in range((today - since).days + 2)]
    cost = Counter[datetime]()
    for line in spend.spend_lines(begins, until=now, projects=projects):
        cost[line.since] += line.exact_num
    *past, current, tomorrow = begins
    pattern = WeeklyPattern([cost[day] for day in past])
    if not pattern.has_enough_history:
        return None
    so_far = sum(amount for day, amount in cost.items() if day >= month.start)
    left = Fraction((tomorrow - now) // SECOND, (tomorrow - current) // SECOND)
    count = ((month.end - SECOND).astimezone(zone).date() - today).days + 1
    forecast = pattern.forecast_days(count, left_of_first=left)
    days = (
        SpendForecastDay(today + timedelta(days=n), each.day, each.until_then.plus(so_far))
        for n, each in enumerate(forecast)
    )
    return SpendForecast(tuple(days))
