"""Demo fleet: two simulated clusters, three GPU models and CPUs, all shapes on sale."""

from datetime import datetime

from broker.domain.geometry.cpu_blocks import CPU_MODEL_NAME
from broker.models import Offering, OfferingState
from broker.services.inventory import gpu_catalogue, hardware
from broker.services.inventory.hardware import SimulatedRack

DEMO_RACKS = (
    SimulatedRack("north-1", "eu-north", "H200-141GB", nodes=4, fabric=8, numa=4),
    SimulatedRack("north-1", "eu-north", CPU_MODEL_NAME, nodes=3, first=5),
    SimulatedRack("west-2", "eu-west", "H100-80GB", nodes=2, fabric=2, numa=4),
    SimulatedRack("west-2", "eu-west", "A100-80GB", nodes=2, first=3, numa=4),
)


def create_fleet(*, now: datetime) -> int:
    """Create the racks and publish their offerings; return the number of new devices."""
    gpu_catalogue.load_gpu_models()
    gpus = hardware.add_simulated_racks(DEMO_RACKS, now=now)
    gpu_catalogue.derive_offerings(now=now)
    Offering.objects.filter(state=OfferingState.DRAFT).update(state=OfferingState.PUBLISHED)
    return gpus


def first_offering() -> str:
    """Return the id of the small slice that the first start's example launches."""
    return (
        Offering.objects.published()
        .get(gpu_model="H200-141GB", profile="1g.18gb", price_class="on_demand", region="eu-north")
        .pk
    )
