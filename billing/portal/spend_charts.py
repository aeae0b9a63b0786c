"""What the page of spend draws: what each day cost and the next likely will, and the month's running total."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from billing.domain.money import exponent_of, to_minor
from billing.domain.money import shown as written
from billing.domain.outlook import Likely
from billing.domain.periods import Period
from billing.models import Budget
from billing.portal.tally import Tally, key_of
from billing.services.outlook import Day, Outlook
from billing.services.spend import Line
from tenants.models import Tenant

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)


def columns(
    used: list[Line], told: Tally, borders: list[datetime], *, step: str, group: str, zone: ZoneInfo
) -> list[dict[str, Any]]:
    """Return one column per stretch, stacked by the groups that have a colour, the rest as one."""
    places = exponent_of(told.currency)
    place = {row.key: i for i, (_, row) in enumerate(told.series)}
    last = max(len(told.series) - 1, 0)
    exact = {border: [0] * (last + 1) for border in borders[:-1]}
    for line in used:
        exact[line.since][place.get(key_of(line, group), last)] += line.exact_num
    return [
        {
            "label": axis(border.astimezone(zone), step),
            "amounts": tuple(to_minor(num, places) for num in sums),
        }
        for border, sums in exact.items()
    ]


def axis(day: datetime, step: str) -> str:
    if step == "day":
        return str(day.day) if day.day == 1 or day.day % 5 == 0 else ""
    return f"{day.day} {day:%b}" if step == "week" else f"{day:%b}"


def expected(drawn: list[dict[str, Any]], outlook: Outlook, currency: str) -> list[dict[str, Any]]:
    """Put what days to come will likely cost in the place of their columns; today's shows what it cost so far."""
    places = exponent_of(currency)
    to_come = outlook.days[1:]
    known = drawn[: len(drawn) - len(to_come)]
    return [*known, *(pale(day, places) for day in to_come)]


def pale(day: Day, places: int) -> dict[str, Any]:
    on = datetime(day.day.year, day.day.month, day.day.day, tzinfo=UTC)
    likely = minor(day.cost, places)
    return {
        "label": axis(on, "day"),
        "expected": likely.amount,
        "low": likely.low,
        "high": likely.high,
    }


def minor(likely: Likely, places: int) -> Likely:
    """Round what is exact to whole coins."""
    return Likely(
        to_minor(likely.amount, places), to_minor(likely.low, places), to_minor(likely.high, places)
    )


def now_at(month: Period, now: datetime) -> Decimal:
    """Return how many columns of days lie behind now."""
    return Decimal((now - month.start) // MINUTE) / 1440


def track(
    used: list[Line], month: Period, *, tenant: Tenant, now: datetime, outlook: Outlook | None
) -> dict[str, Any]:
    """Return the month's running total, and where it will likely go."""
    places, zone = exponent_of(tenant.currency), ZoneInfo(tenant.time_zone)
    whole = (month.end - month.start + DAY / 2) // DAY
    by_day: dict[int, int] = {}
    for line in used:
        day = line.since.astimezone(zone).day
        by_day[day] = by_day.get(day, 0) + line.exact_num
    done, total = [(Decimal(0), 0)], 0
    for day in range(1, max(by_day, default=0) + 1):
        total += by_day.get(day, 0)
        # The last day is drawn as far as it has come.
        share = min(Decimal(day), now_at(month, now))
        done.append((share / whole, to_minor(total, places)))
    ticks = tuple((Decimal(day - 1) / whole, str(day)) for day in (1, 10, 20, whole))
    return {
        "done": tuple(done),
        "ticks": ticks,
        **(forecast(outlook, whole, tenant.currency) if outlook else {}),
    }


def forecast(outlook: Outlook, whole: int, currency: str) -> dict[str, Any]:
    """Return the running total of the days to come, each at its end, with what it lies between."""
    places = exponent_of(currency)
    points = [(day.day.day, minor(day.month_by_then, places)) for day in outlook.days]
    return {
        "forecast": tuple((Decimal(day) / whole, each.amount, each.low, each.high) for day, each in points),
        "forecast_word": f"{written(points[-1][1].amount, currency)} likely",
    }


def limit(budget: Budget | None, in_all: int, past: str) -> dict[str, Any]:
    """Return the line that the running total is held against: the budget's, or what the month before came to."""
    if budget:
        word = f"Budget {written(budget.limit_minor, budget.currency)}"
        return {"limit": budget.limit_minor, "limit_word": word}
    return {"limit": in_all, "limit_word": f"{past} in all" if in_all else ""}
