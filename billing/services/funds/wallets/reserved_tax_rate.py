"""Tax rate for reserved money: the highest that may be owed."""

from datetime import UTC, date, datetime, timedelta

from billing.domain.tax import TAXED_TREATMENTS, TaxStatus
from ports.postgres import sql_statements
from tenants.models import Tenant

RATES_SQL = """
SELECT r.rate_bp, upper(r.valid), (SELECT p.label FROM billing_billingperiod p
                                    WHERE p.tenant_id = %s AND p.status = 'open' ORDER BY p.span LIMIT 1)
  FROM billing_taxrate r WHERE r.jurisdiction = %s
"""


def max_tax_rate_bp(tenant: Tenant, status: TaxStatus, *, on: datetime) -> int:
    """Return the highest rate, in basis points, that may apply to an open month.

    A month is taxed by its last day, and may be over for a while before its invoice is made. Zero if no
    tax is owed, or if no rate is known: then the month stays a draft until one is.
    """
    if status.treatment not in TAXED_TREATMENTS:
        return 0
    rates = sql_statements.fetch_rows(RATES_SQL, [tenant.pk, status.jurisdiction])
    today = on.astimezone(UTC).date()
    return max((rate_bp for rate_bp, ends, first in rates if ends is None or ends > _tax_day(first, today)), default=0)


def _tax_day(first: str | None, today: date) -> date:
    return min(today, last_day(first)) if first else today


def last_day(label: str) -> date:
    """Return the last day of a month such as 2026-11."""
    return (date.fromisoformat(f"{label}-28") + timedelta(days=4)).replace(day=1) - timedelta(days=1)
