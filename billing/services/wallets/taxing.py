"""The rate of tax that money is set aside by: the highest that may come to be owed."""

from datetime import UTC, date, datetime, timedelta

from billing.domain.tax import TAXED, Standing
from ports import database
from tenants.models import Tenant

RATES = """
SELECT r.rate_bp, upper(r.valid), (SELECT p.label FROM billing_billingperiod p
                                    WHERE p.tenant_id = %s AND p.status = 'open' ORDER BY p.span LIMIT 1)
  FROM billing_taxrate r WHERE r.jurisdiction = %s
"""


def rate_of(tenant: Tenant, standing: Standing, *, on: datetime) -> int:
    """Return the highest rate in basis points, of any category, by which an open month of a tenant may be taxed.

    A month is taxed by its last day, and may be over for a while before its invoice is made. Nothing where no tax is
    owed, or no rate is known: then the month stays a draft until one is.
    """
    if standing.treatment not in TAXED:
        return 0
    rates = database.rows(RATES, [tenant.pk, standing.jurisdiction])
    today = on.astimezone(UTC).date()
    return max(
        (rate_bp for rate_bp, ends, first in rates if ends is None or ends > _day(first, today)), default=0
    )


def _day(first: str | None, today: date) -> date:
    return min(today, last_day(first)) if first else today


def last_day(label: str) -> date:
    """Return the last day of a month such as 2026-11."""
    return (date.fromisoformat(f"{label}-28") + timedelta(days=4)).replace(day=1) - timedelta(days=1)
