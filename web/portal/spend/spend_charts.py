"""Charts of the spend page: cost per day with its forecast, and the running total."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from django.utils.translation import gettext as _

from billing.domain.money import exponent_of, to_minor
from billing.domain.money import format_minor as written
from billing.domain.periods import Period
from billing.domain.spend_forecast import ExpectedCost
from billing.models import Budget
from billing.services.rating.spend import SpendLine
from billing.services.reports.spend_forecast import SpendForecast, SpendForecastDay
from tenants.models import Tenant
from web.portal.spend.spend_totals import SpendTotals, group_key

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)


def spend_columns(
    used: list[SpendLine], totals: SpendTotals, boundaries: list[datetime], *, step: str, group: str, zone: ZoneInfo
) -> list[dict[str, Any]]:
    """Return one column per interval, stacked by coloured group; the rest is one group."""
    places = exponent_of(totals.currency)
    place = {row.key: i for i, (_, row) in enumerate(totals.series)}
    last = max(len(totals.series) - 1, 0)
    exact = {boundary: [0] * (last + 1) for boundary in boundaries[:-1]}
    for line in used:
        exact[line.since][place.get(group_key(line, group), last)] += line.exact_num
    return [
        {"label": axis_label(boundary.astimezone(zone), step), "amounts": tuple(to_minor(num, places) for num in sums)}
        for boundary, sums in exact.items()
    ]


def axis_label(day: datetime, step: str) -> str:
    if step == "day":
        return str(day.day) if day.day == 1 or day.day % 5 == 0 else ""
    return f"{day.day} {day:%b}" if step == "week" else f"{day:%b}"


def with_forecast_columns(drawn: list[dict[str, Any]], forecast: SpendForecast, currency: str) -> list[dict[str, Any]]:
    """Replace the columns of coming days by their forecast; today keeps its actual cost."""
    places = exponent_of(currency)
    to_come = forecast.days[1:]
    known = drawn[: len(drawn) - len(to_come)]
    return [*known, *(forecast_column(day, places) for day in to_come)]


def forecast_column(day: SpendForecastDay, places: int) -> dict[str, Any]:
    on = datetime(day.day.year, day.day.month, day.day.day, tzinfo=UTC)
    likely = round_forecast(day.cost, places)
    return {"label": axis_label(on, "day"), "expected": likely.amount, "low": likely.low, "high": likely.high}


def round_forecast(likely: ExpectedCost, places: int) -> ExpectedCost:
    """Round exact amounts to minor units."""
    return ExpectedCost(to_minor(likely.amount, places), to_minor(likely.low, places), to_minor(likely.high, places))


def columns_before_now(month: Period, now: datetime) -> Decimal:
    """Return how many day columns lie before now."""
    return Decimal((now - month.start) // MINUTE) / 1440


def running_total(
    used: list[SpendLine], month: Period, *, tenant: Tenant, now: datetime, forecast: SpendForecast | None
) -> dict[str, Any]:
    """Return the month's running total with its forecast."""
    places, zone = exponent_of(tenant.currency), ZoneInfo(tenant.time_zone)
    whole = (month.end - month.start + DAY / 2) // DAY
    by_day: dict[int, int] = {}
    for line in used:
        day = line.since.astimezone(zone).day
        by_day[day] = by_day.get(day, 0) + line.exact_num
    done, total = [(Decimal(0), 0)], 0
    for day in range(1, max(by_day, default=0) + 1):
        total += by_day.get(day, 0)
        # The last day is drawn up to now.
        share = min(Decimal(day), columns_before_now(month, now))
        done.append((share / whole, to_minor(total, places)))
    ticks = tuple((Decimal(day - 1) / whole, str(day)) for day in (1, 10, 20, whole))
    return {
        "done": tuple(done),
        "ticks": ticks,
        **(forecast_track(forecast, whole, tenant.currency) if forecast else {}),
    }


def forecast_track(forecast: SpendForecast, whole: int, currency: str) -> dict[str, Any]:
    """Return the forecast running total of the coming days, with its interval."""
    places = exponent_of(currency)
    points = [(day.day.day, round_forecast(day.month_by_then, places)) for day in forecast.days]
    return {
        "forecast": tuple((Decimal(day) / whole, each.amount, each.low, each.high) for day, each in points),
        "forecast_word": _("{amount} likely").format(amount=written(points[-1][1].amount, currency)),
    }


def reference_line(budget: Budget | None, in_all: int, past: str) -> dict[str, Any]:
    """Return the reference line: the budget, or last month's total."""
    if budget:
        word = _("Budget {amount}").format(amount=written(budget.limit_minor, budget.currency))
        return {"limit": budget.limit_minor, "limit_word": word}
    return {"limit": in_all, "limit_word": _("{past} total").format(past=past) if in_all else ""}
