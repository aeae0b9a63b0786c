"""Demo list prices in whole cents per hour; spot is 54 % cheaper."""

from datetime import datetime

from billing.services.catalogue import price_list
from broker.domain.lifecycle.states import PriceClass
from broker.models import Offering
from tenants.services.actors import Actor

CENT = 10**7  # nano units in a cent
LIST_PRICES_CENTS = {
    "H200": {
        "card": 379,
        "7g.141gb": 365,
        "4g.71gb": 199,
        "3g.71gb": 155,
        "2g.35gb": 104,
        "1g.35gb": 78,
        "1g.18gb": 52,
    },
    "H100": {"card": 289, "7g.80gb": 279, "4g.40gb": 168, "3g.40gb": 134, "2g.20gb": 88, "1g.20gb": 58, "1g.10gb": 39},
    "A100": {"card": 169, "7g.80gb": 162, "4g.40gb": 96, "3g.40gb": 78, "2g.20gb": 48, "1g.20gb": 33, "1g.10gb": 24},
}
SPOT_PERCENT = 46


def publish_list_prices(*, since: datetime, actor: Actor, now: datetime, currency: str = "EUR") -> int:
    """Publish a list price for every published offering without one; return how many."""
    known = price_list.prices_at(now, currency=currency)
    missing = [o for o in Offering.objects.published() if o.pk not in known]
    for offering in missing:
        nano = LIST_PRICES_CENTS[offering.model.partition("-")[0]][offering.profile] * CENT
        if offering.price_class == PriceClass.SPOT:
            nano = nano * SPOT_PERCENT // 100
        price_list.publish_price(
            offering=offering, currency=currency, nano_per_hour=nano, since=since, actor=actor, now=now
        )
    return len(missing)
