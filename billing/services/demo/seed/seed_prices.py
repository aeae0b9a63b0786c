"""Demo list prices in whole cents per hour; spot is 54 % cheaper."""

from datetime import datetime

from billing.services.catalogue import price_list
from broker.domain.geometry.cpu_blocks import CPU_MODEL_NAME, CPU_PROFILES, VCPUS_PER_UNIT
from broker.domain.lifecycle.states import PriceClass
from broker.models import Offering
from tenants.services.actors import Actor

CENT = 10**7  # nano units in a cent
CENTS_PER_VCPU = 5
PROFILES_OF_80_GB = ("whole-gpu", "7g.80gb", "4g.40gb", "3g.40gb", "2g.20gb", "1g.20gb", "1g.10gb")
LIST_PRICES_CENTS = {
    "H200-141GB": {
        "whole-gpu": 379,
        "7g.141gb": 365,
        "4g.71gb": 199,
        "3g.71gb": 155,
        "2g.35gb": 104,
        "1g.35gb": 78,
        "1g.18gb": 52,
    },
    "H100-80GB": dict(zip(PROFILES_OF_80_GB, (289, 279, 168, 134, 88, 58, 39), strict=True)),
    "A100-80GB": dict(zip(PROFILES_OF_80_GB, (169, 162, 96, 78, 48, 33, 24), strict=True)),
    CPU_MODEL_NAME: {each.name: each.compute * VCPUS_PER_UNIT * CENTS_PER_VCPU for each in CPU_PROFILES},
}
SPOT_PERCENT = 46


def publish_list_prices(*, since: datetime, actor: Actor, now: datetime, currency: str = "EUR") -> int:
    """Publish a list price for every published offering without one; return how many."""
    known = price_list.prices_at(now, currency=currency)
    missing = [o for o in Offering.objects.published() if o.pk not in known]
    for offering in missing:
        nano = LIST_PRICES_CENTS[offering.model][offering.profile] * CENT
        if offering.price_class == PriceClass.SPOT:
            nano = nano * SPOT_PERCENT // 100
        price_list.publish_price(
            offering=offering, currency=currency, nano_per_hour=nano, since=since, actor=actor, now=now
        )
    return len(missing)
