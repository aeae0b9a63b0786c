"""The rate of tax that money is set aside by: the highest that may come to be owed."""

from datetime import UTC, datetime

from django.db.models import Max, Q

from billing.domain.tax import TAXED, Standing
from billing.models import TaxRate


def rate_of(standing: Standing, *, on: datetime) -> int:
    """Return the highest rate in basis points, of any category, that holds where a tenant is taxed or is announced.

    Nothing where no tax is owed, or no rate is known: then the month stays a draft until one is.
    """
    if standing.treatment not in TAXED:
        return 0
    rates = TaxRate.objects.filter(jurisdiction=standing.jurisdiction)
    day = on.astimezone(UTC).date()
    still = Q(valid__upper_inf=True) | Q(valid__endswith__gt=day)
    known = rates.filter(still).aggregate(most=Max("rate_bp"))["most"]
    return int(known or 0)
