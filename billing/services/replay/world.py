"""What a replay runs in: its own fleet, offerings, prices and tenants in a database that holds nothing else."""

from dataclasses import dataclass
from datetime import UTC, datetime

from django.db import transaction

from billing.services import prices
from billing.services.showcase import papers
from billing.services.showcase.prices import CENT, CENTS
from broker.domain.states import PriceClass
from broker.models import Gpu, Lease, Offering, OfferingState
from broker.services import catalogue, inventory
from broker.services.inventory import Rack
from tenants.models import Project, Quota
from tenants.services import tenants
from tenants.services.actors import Actor
from tenants.services.walls import as_sweep, as_tenant

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
REPLAY = Actor("system", "", "replay")
# Months begin at different moments for different tenants.
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Sydney", "America/St_Johns")
CARDS_PER_NODE = 8
BOUNDLESS = 10**17


class NotEmpty(Exception):
    """The database already holds leases or cards; a replay must not mix with them."""


@dataclass(frozen=True)
class World:
    """The stage: one project per tenant, and the offering of every shape."""

    projects: tuple[Project, ...]
    offerings: dict[tuple[str, str], Offering]
    cards: int


def models() -> list[str]:
    """Return the GPU models a fleet may be of: those with a list price for every shape that is sold of them."""
    return [
        name
        for name, spec in catalogue.specs().items()
        if {p.name for p in catalogue.plain_profiles(spec)}
        <= CENTS.get(catalogue.short_name(name), {}).keys()
    ]


@transaction.atomic
def build(*, model: str, cards: int, tenant_count: int) -> World:
    """Fill an empty database, or raise NotEmpty and leave it as it was; tenants have no quota that binds."""
    with as_sweep():
        if Lease.objects.exists() or Gpu.objects.exists():
            raise NotEmpty("This database already holds cards or leases; `make replay` makes an empty one.")
    catalogue.load_gpu_models()
    papers.publish(now=BEGIN)  # who supplies here may owe tax on it
    nodes, rest = divmod(cards, CARDS_PER_NODE)
    racks = [Rack("replay", "trace", model, nodes)] if nodes else []
    if rest:
        racks.append(Rack("replay", "trace", model, 1, cards_per_node=rest, first=nodes + 1))
    inventory.add_simulated(racks, now=BEGIN)
    catalogue.derive_offerings(now=BEGIN)
    Offering.objects.filter(price_class=PriceClass.ON_DEMAND).update(state=OfferingState.PUBLISHED)
    offerings = {(o.profile, o.isolation): o for o in Offering.objects.published().order_by("profile")}
    for offering in offerings.values():
        cents = CENTS[catalogue.short_name(model)][offering.profile]
        prices.publish(
            offering=offering,
            currency="EUR",
            nano_per_hour=cents * CENT,
            since=BEGIN,
            actor=REPLAY,
            now=BEGIN,
        )
    return World(tuple(_tenant(number) for number in range(tenant_count)), offerings, cards)


def _tenant(number: int) -> Project:
    tenant, root = tenants.create(
        name=f"Tenant {number + 1}",
        owner=None,
        actor=REPLAY,
        now=BEGIN,
        time_zone=ZONES[number % len(ZONES)],
        currency="EUR",
    )
    with as_tenant(tenant.pk):
        Quota.objects.update(limit=BOUNDLESS, soft_limit=BOUNDLESS)
    return root
