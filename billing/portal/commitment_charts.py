"""How much of a commitment is used this month, as its panel draws it: hours, money owed, a column for each day."""

from calendar import monthrange
from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from billing.domain.money import exponent_of as places_of
from billing.domain.money import fixed_point, half_up, to_minor
from billing.portal.spend_charts import axis
from billing.services.coverage import Coverage

SERIES = ("f1", "f3", "idle")
KEYS = [
    {"kind": "f1", "label": "covered"},
    {"kind": "f3", "label": "beyond it"},
    {"kind": "idle", "label": "not used, owed"},
]


def shown(found: Coverage, now: datetime, zone: ZoneInfo) -> dict[str, Any]:
    """Return what a panel shows of one: hours, its share, what is owed, and a column for each day of the month."""
    agreed = found.agreed
    share = half_up(100 * found.covered, found.committed)
    return {
        "row": agreed,
        "committed": hours(found.committed),
        "covered": hours(found.covered),
        "beyond": hours(found.beyond),
        "unused": hours(found.unused),
        "share": f"{share} %",
        "owed": to_minor(found.owed_unused, places_of(agreed.currency)),
        "columns": columns(found, zone),
        "now_at": now.astimezone(zone).day,
        "words": (
            f"{agreed.offering.label}, hours a day: of {hours(found.committed)} committed to so far"
            f" {hours(found.covered)} were used, {hours(found.beyond)} beyond them"
        ),
    }


def columns(found: Coverage, zone: ZoneInfo) -> list[dict[str, Any]]:
    """Return a column for each day of the month, in seconds; nothing for those it does not hold in, or to come."""
    first = date.fromisoformat(f"{found.month}-01")
    by_day = {day.since.astimezone(zone).day: (day.covered, day.beyond, day.unused) for day in found.days}
    return [
        {
            "label": axis(datetime(first.year, first.month, n, tzinfo=zone), "day"),
            "amounts": by_day.get(n, (0, 0, 0)),
        }
        for n in range(1, monthrange(first.year, first.month)[1] + 1)
    ]


def hours(seconds: int) -> str:
    """Write seconds as hours with one decimal: `1,234.5 h`."""
    return f"{fixed_point(half_up(seconds, 360), 1, thousands=',')} h"
