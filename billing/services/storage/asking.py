"""What storage asks of a tenant now, region by region, and what its volumes have cost so far."""

from collections.abc import Sequence
from datetime import datetime

from billing.services import prices, spend
from billing.services.spend import Cost
from broker.models import Offering
from tenants.models import Tenant

MONTH_H = 730  # hours that a month is told by; what is charged are its seconds


def per_month(tenant: Tenant, *, now: datetime) -> dict[str, int]:
    """Return 10⁻⁹ currency units for a GiB and 730 hours, by region; regions without a price are left out."""
    regions = dict(Offering.objects.storage().values_list("pk", "region"))
    if not regions:
        return {}
    found = prices.at(now, currency=tenant.currency, offerings=regions, tenant=tenant.pk)
    told = {regions[offering]: price.nano_per_hour * MONTH_H for offering, price in found.items()}
    return dict(sorted(told.items()))


def so_far(volumes: Sequence[str], *, now: datetime) -> dict[str, Cost]:
    """Return what each volume has cost to this second, in one query; those that cost nothing are left out."""
    return spend.costs(volumes, now=now) if volumes else {}
