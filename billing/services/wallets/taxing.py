"""The rate of tax that money is set aside by: the highest that may come to be owed."""

from datetime import UTC, date, datetime, timedelta

from django.db.models import Max, Q

from billing.domain.tax import TAXED, Standing
from billing.models import BillingPeriod, TaxRate
from billing.models.periods import OPEN
from tenants.models import Tenant


def rate_of(tenant: Tenant, standing: Standing, *, on: datetime) -> int:
    """Return the highest rate in basis points, of any category, by which an open month of a tenant may be taxed.

    A month is taxed by its last day, and may be over for a while before its invoice is made. Nothing where no tax is
    owed, or no rate is known: then the month stays a draft until one is.
    """
    if standing.treatment not in TAXED:
        return 0
    first = BillingPeriod.objects.filter(tenant=tenant, status=OPEN).order_by("span").first()
    today = on.astimezone(UTC).date()
    day = min(today, last_day(first.label)) if first else today
    rates = TaxRate.objects.filter(jurisdiction=standing.jurisdiction)
    still = Q(valid__upper_inf=True) | Q(valid__endswith__gt=day)
    known = rates.filter(still).aggregate(most=Max("rate_bp"))["most"]
    return int(known or 0)


def last_day(label: str) -> date:
    """Return the last day of a month such as 2026-11."""
    return (date.fromisoformat(f"{label}-28") + timedelta(days=4)).replace(day=1) - timedelta(days=1)
