"""Replay environment: its own fleet, offerings, prices and tenants in an otherwise empty database."""

from dataclasses import dataclass
from datetime import UTC, datetime

from django.db import transaction

from billing.services.catalogue import price_list
from billing.services.demo.seed import seed_tax
from billing.services.demo.seed.seed_prices import CENT, LIST_PRICES_CENTS
from broker.domain.lifecycle.states import PriceClass
from broker.models import Gpu, Lease, Offering, OfferingState
from broker.services.inventory import gpu_catalogue, hardware
from broker.services.inventory.hardware import SimulatedRack
from tenants.models import Project, Quota
from tenants.services import tenants
from tenants.services.actors import Actor
from tenants.services.rls import system_scope, tenant_scope

REPLAY_START = datetime(2026, 1, 1, tzinfo=UTC)
REPLAY_ACTOR = Actor("system", "", "replay")
# Months begin at different times for different tenants.
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Sydney", "America/St_Johns")
GPUS_PER_NODE = 8
UNLIMITED_QUOTA = 10**17


class DatabaseNotEmpty(Exception):
    """The database already holds leases or GPUs; a replay must not mix with them."""


@dataclass(frozen=True)
class ReplayEnvironment:
    """The environment: one project per tenant, and an offering per shape."""

    projects: tuple[Project, ...]
    offerings: dict[tuple[str, str], Offering]
    gpus: int


def usable_models() -> list[str]:
    """Return the usable GPU models: those with a list price for every sold shape."""
    return [
        name
        for name, spec in gpu_catalogue.gpu_model_specs().items()
        if spec.has_gpu
        and {p.name for p in gpu_catalogue.plain_profiles(spec)} <= LIST_PRICES_CENTS.get(name, {}).keys()
    ]


@transaction.atomic
def build_environment(*, model: str, gpus: int, tenant_count: int) -> ReplayEnvironment:
    """Fill an empty database, or raise DatabaseNotEmpty and change nothing.

    Tenants have no binding quota.
    """
    with system_scope():
        if Lease.objects.exists() or Gpu.objects.exists():
            raise DatabaseNotEmpty("This database already contains GPUs or leases. `make replay` creates an empty one.")
    gpu_catalogue.load_gpu_models()
    seed_tax.publish_tax_rates(now=REPLAY_START)  # the configured supplier may owe tax
    nodes, rest = divmod(gpus, GPUS_PER_NODE)
    racks = [SimulatedRack("replay", "trace", model, nodes)] if nodes else []
    if rest:
        racks.append(SimulatedRack("replay", "trace", model, 1, gpus_per_node=rest, first=nodes + 1))
    hardware.add_simulated_racks(racks, now=REPLAY_START)
    gpu_catalogue.derive_offerings(now=REPLAY_START)
    Offering.objects.filter(price_class=PriceClass.ON_DEMAND).update(state=OfferingState.PUBLISHED)
    offerings = {(o.profile, o.isolation): o for o in Offering.objects.published().order_by("profile")}
    for offering in offerings.values():
        cents = LIST_PRICES_CENTS[model][offering.profile]
        price_list.publish_price(
            offering=offering,
            currency="EUR",
            nano_per_hour=cents * CENT,
            since=REPLAY_START,
            actor=REPLAY_ACTOR,
            now=REPLAY_START,
        )
    return ReplayEnvironment(tuple(_tenant(number) for number in range(tenant_count)), offerings, gpus)


def _tenant(number: int) -> Project:
    tenant, root = tenants.create(
        name=f"Tenant {number + 1}",
        owner=None,
        actor=REPLAY_ACTOR,
        now=REPLAY_START,
        time_zone=ZONES[number % len(ZONES)],
        currency="EUR",
    )
    with tenant_scope(tenant.pk):
        Quota.objects.update(limit=UNLIMITED_QUOTA, soft_limit=UNLIMITED_QUOTA)
    return root
