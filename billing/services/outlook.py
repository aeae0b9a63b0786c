"""What this month will likely have cost by its end, if days go on as they did. Runs behind a tenant's wall."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from fractions import Fraction
from zoneinfo import ZoneInfo

from billing.domain.outlook import MOST, Likely, Rhythm
from billing.domain.periods import midnight, month_of
from billing.services import spend
from tenants.models import Tenant

SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Day:
    """A local day to come, or the rest of today; amounts over 3600·10⁹."""

    day: date
    cost: Likely
    month_by_then: Likely  # with all that the month cost so far


@dataclass(frozen=True, slots=True)
class Outlook:
    """The days that are left of a month, today's rest first; there is always one."""

    days: tuple[Day, ...]
    going_on: int  # what the month comes to if all that runs now goes on to its own end, and nothing begins

    @property
    def month(self) -> Likely:
        """What the whole month will likely come to."""
        return self.days[-1].month_by_then


def outlook(tenant: Tenant, *, now: datetime, projects: Iterable[str] | None = None) -> Outlook | None:
    """Tell what is left of a tenant's month for projects (all, unless named); None until there were two weeks of use.

    Two queries. What runs now says nothing of what is likely: it may end tonight, and others begin tomorrow, as they
    did before. What it comes to if it goes on is told beside it.
    """
    zone, month = ZoneInfo(tenant.time_zone), month_of(tenant.time_zone, now)
    today = now.astimezone(zone).date()
    since = min(month.start.astimezone(zone).date(), today - timedelta(days=MOST))
    begins = [midnight(since + timedelta(days=n), zone) for n in range((today - since).days + 2)]
    cost = Counter[datetime]()
    for line in spend.lines(begins, until=now, projects=projects):
        cost[line.since] += line.exact_num
    *past, current, tomorrow = begins
    rhythm = Rhythm([cost[day] for day in past])
    if not rhythm.known:
        return None
    so_far = sum(amount for day, amount in cost.items() if day >= month.start)
    left = Fraction((tomorrow - now) // SECOND, (tomorrow - current) // SECOND)
    count = ((month.end - SECOND).astimezone(zone).date() - today).days + 1
    told = rhythm.ahead(count, left_of_first=left)
    days = (
        Day(today + timedelta(days=n), each.day, each.until_then.after(so_far)) for n, each in enumerate(told)
    )
    still = spend.going_on(projects, tenant, now=now, until=month.end)
    return Outlook(tuple(days), so_far + still)
