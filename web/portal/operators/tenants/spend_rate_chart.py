"""Chart of a tenant's spend rate over the last days."""

from datetime import date
from typing import Any
from zoneinfo import ZoneInfo

from django.utils.translation import gettext as _

from billing.services.reports.spend_rates import DAYS, STEP, SpendRates
from tenants.models import Tenant
from web.ui import formatting


def rate_track(rates: SpendRates, burn: int, *, limit: int, tenant: Tenant) -> dict[str, Any]:
    """Return the points, days and limit, unless it is far above."""
    zone, count = ZoneInfo(tenant.time_zone), len(rates.steps)
    ticks: list[tuple[float, str]] = []
    shown: set[date] = set()
    for i, each in enumerate(rates.steps):
        day = (each.since + STEP / 2).astimezone(zone).date()
        if day not in shown and shown:
            ticks.append(((i + 0.5) / count, f"{day.day} {day:%b}"))
        shown.add(day)
    top = max([burn, *(each.nano_per_hour for each in rates.steps)])
    return {
        "steps": [each.nano_per_hour for each in rates.steps],
        "ticks": ticks,
        "limit": limit if limit <= 3 * top else 0,
        "limit_word": _("Limit {price}/h").format(price=formatting.format_price(limit, tenant.currency)),
        "label": _("Spend per hour of {name} in the last {days} days; {price}/h now").format(
            name=tenant.name, days=DAYS, price=formatting.format_price(burn, tenant.currency)
        ),
    }
