"""The simulated fleet of a first start: two clusters, three kinds of cards, everything they can be cut into on sale."""

from datetime import datetime

from broker.models import Offering, OfferingState
from broker.services import catalogue, inventory
from broker.services.inventory import Rack

RACKS = (
    Rack("north-1", "eu-north", "H200-141GB", nodes=4, fabric=8, numa=4),
    Rack("west-2", "eu-west", "H100-80GB", nodes=2, fabric=2, numa=4),
    Rack("west-2", "eu-west", "A100-80GB", nodes=2, first=3, numa=4),
)


def fill(*, now: datetime) -> int:
    """Put the racks in and publish what can be sold from them; return how many cards are new."""
    catalogue.load_gpu_models()
    cards = inventory.add_simulated(RACKS, now=now)
    catalogue.derive_offerings(now=now)
    Offering.objects.filter(state=OfferingState.DRAFT).update(state=OfferingState.PUBLISHED)
    return cards


def first_offering() -> str:
    """Return the small slice that the first start's example launches."""
    return (
        Offering.objects.published()
        .get(gpu_model="H200-141GB", profile="1g.18gb", price_class="on_demand", region="eu-north")
        .pk
    )
