"""Charts of a commitment's use this month: hours, money owed, one column per day."""

from calendar import monthrange
from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from billing.domain.money import exponent_of, format_fixed_point, half_up, to_minor
from billing.services.agreements.commitment_coverage import CommitmentCoverage
from web.portal.spend.spend_charts import axis_label

COVERAGE_SERIES = ("series-1", "series-3", "idle")
COVERAGE_LEGEND = [
    {"kind": "series-1", "label": gettext_lazy("covered")},
    {"kind": "series-3", "label": gettext_lazy("beyond commitment")},
    {"kind": "idle", "label": gettext_lazy("unused, charged")},
]


def coverage_panel(coverage: CommitmentCoverage, now: datetime, zone: ZoneInfo) -> dict[str, Any]:
    """Return the template context of one commitment's panel."""
    commitment = coverage.commitment
    share = half_up(100 * coverage.covered, coverage.committed)
    return {
        "commitment": commitment,
        "committed": format_hours(coverage.committed),
        "covered": format_hours(coverage.covered),
        "beyond": format_hours(coverage.beyond),
        "unused": format_hours(coverage.unused),
        "share": f"{share} %",
        "owed": to_minor(coverage.owed_unused, exponent_of(commitment.currency)),
        "columns": daily_columns(coverage, zone),
        "today": now.astimezone(zone).day,
        "alt_text": (
            _(
                "{offering_label}, hours per day: used {covered} of {committed} committed so far, {beyond} beyond them"
            ).format(
                offering_label=commitment.offering.label,
                committed=format_hours(coverage.committed),
                covered=format_hours(coverage.covered),
                beyond=format_hours(coverage.beyond),
            )
        ),
    }


def daily_columns(coverage: CommitmentCoverage, zone: ZoneInfo) -> list[dict[str, Any]]:
    """Return a column of seconds for each day of the month.

    Days outside the commitment and days to come have zeros.
    """
    first = date.fromisoformat(f"{coverage.month}-01")
    by_day = {day.since.astimezone(zone).day: (day.covered, day.beyond, day.unused) for day in coverage.days}
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
