"""Charts of a commitment's use this month: hours, money owed, one column per day."""

from calendar import monthrange
from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from billing.domain.money import exponent_of as places_of
from billing.domain.money import format_fixed_point, half_up, to_minor
from billing.services.agreements.commitment_coverage import CommitmentCoverage
from web.portal.spend.spend_charts import axis_label

COVERAGE_SERIES = ("series-1", "series-3", "idle")
COVERAGE_LEGEND = [
    {"kind": "series-1", "label": gettext_lazy("covered")},
    {"kind": "series-3", "label": gettext_lazy("beyond commitment")},
    {"kind": "idle", "label": gettext_lazy("unused, charged")},
]


def coverage_panel(found: CommitmentCoverage, now: datetime, zone: ZoneInfo) -> dict[str, Any]:
    """Return what the panel of one commitment shows.

    Hours, the share used, what is owed, and a column for each day of the month.
    """
    agreed = found.agreed
    share = half_up(100 * found.covered, found.committed)
    return {
        "row": agreed,
        "committed": format_hours(found.committed),
        "covered": format_hours(found.covered),
        "beyond": format_hours(found.beyond),
        "unused": format_hours(found.unused),
        "share": f"{share} %",
        "owed": to_minor(found.owed_unused, places_of(agreed.currency)),
        "columns": daily_columns(found, zone),
        "now_at": now.astimezone(zone).day,
        "words": (
            _(
                "{offering_label}, hours per day: of {committed} committed so far {covered} were used, "
                "{beyond} beyond them"
            ).format(
                offering_label=agreed.offering.label,
                committed=format_hours(found.committed),
                covered=format_hours(found.covered),
                beyond=format_hours(found.beyond),
            )
        ),
    }


def daily_columns(found: CommitmentCoverage, zone: ZoneInfo) -> list[dict[str, Any]]:
    """Return a column of seconds for each day of the month.

    Days outside the commitment and days to come have zeros.
    """
    first = date.fromisoformat(f"{found.month}-01")
    by_day = {day.since.astimezone(zone).day: (day.covered, day.beyond, day.unused) for day in found.days}
    return [
        {
            "label": axis_label(datetime(first.year, first.month, n, tzinfo=zone), "day"),
            "amounts": by_day.get(n, (0, 0, 0)),
        }
        for n in range(1, monthrange(first.year, first.month)[1] + 1)
    ]


def format_hours(seconds: int) -> str:
    """Format seconds as hours with one decimal: `1,234.5 h`."""
    return f"{format_fixed_point(half_up(seconds, 360), 1, thousands=',')} h"
