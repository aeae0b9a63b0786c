"""Storage prices of a tenant by region, and the cost of its volumes so far."""

from collections.abc import Sequence
from datetime import datetime

from billing.services.catalogue import price_list
from billing.services.rating import spend
from billing.services.rating.spend import LeaseCost
from broker.models import Offering
from tenants.models import Tenant

HOURS_PER_MONTH = 730  # hours of a month in displayed prices; charges are by the second


def monthly_prices(tenant: Tenant, *, now: datetime) -> dict[str, int]:
    """Return the price of a GiB for 730 hours by region, in 10⁻⁹ currency units.

    Regions without a price are left out.
    """
    regions = dict(Offering.objects.storage().values_list("pk", "region"))
    if not regions:
        return {}
    found = price_list.prices_at(now, currency=tenant.currency, offerings=regions, tenant=tenant.pk)
    by_region = {regions[offering]: price.nano_per_hour * HOURS_PER_MONTH for offering, price in found.items()}
    return dict(sorted(by_region.items()))


def volume_costs(volumes: Sequence[str], *, now: datetime) -> dict[str, LeaseCost]:
    """Return the cost of each volume up to now, in one query, leaving out zero."""
    return spend.costs_of(volumes, now=now) if volumes else {}
