"""Available capacity compared with exhaustive search on random fleets."""

from functools import cache
from random import Random

import pytest
from django.db import transaction

from broker.domain.geometry.gpu_state import GpuState
from broker.domain.geometry.profiles import Profile
from broker.domain.lifecycle.states import Isolation
from broker.models import Cluster, Gpu, LayoutPolicy, Lease, Node, Offering
from broker.services.inventory.gpu_catalogue import profile_named, profile_of
from broker.services.inventory.hardware import SimulatedRack
from broker.services.placement import available_capacity
from broker.services.queue import lease_placement
from tenants.services.rls import staff_scope, tenant_scope
from tests.simulation import MODEL, REGION, Simulation, TenantContext, create_fleet, create_tenant, soft_offering

PROFILES = ("whole-gpu", "7g.80gb", "4g.40gb", "3g.40gb", "2g.20gb", "1g.20gb", "1g.10gb")
LAYOUTS: list[list[dict[str, object]]] = [
    [{"profile": "3g.40gb", "start": start, "size": 4} for start in (0, 4)],
    [{"profile": "1g.10gb", "start": start, "size": 1} for start in range(7)],
    [{"profile": "quarter", "start": at, "size": 2, "isolation": "soft"} for at in (0, 2, 4, 6)],
]


@cache
def max_additional(state: GpuState, profile: Profile, starts: tuple[int, ...]) -> int:
    """Try every way of putting more of a profile on a GPU."""
    ways = [
        1 + max_additional(state.with_held(profile, profile.placed_at(start)), profile, starts)
        for start in starts
        if state.fits(profile, profile.placed_at(start))
    ]
    return max(ways, default=0)


def by_brute_force(what: Offering, tenant: str) -> int:
    """Count the slices that fit on each GPU, from database rows."""
    profile, isolation, found = profile_of(what), Isolation(what.isolation), 0
    with staff_scope():
        for gpu in Gpu.objects.sellable().select_related("node__cluster"):
            if gpu.node.cluster.region != what.region:
                continue
            on_gpu = list(gpu.allocation_set.filter(released_at=None))
            cut = gpu.fixed_layout if gpu.layout_policy == LayoutPolicy.FIXED else None
            starts = tuple(
                sorted(each.start for each in profile.placements)
                if cut is None
                else sorted(int(each["start"]) for each in cut if _is(each, profile))
            )
            # A node allocates a share on any of its shared GPUs: all of them count as one.
            of_shares = cut is not None and any(each.get("isolation") == "soft" for each in cut)
            beside = on_gpu
            if of_shares:
                beside = [a for each in gpu.node.gpus.all() for a in each.allocation_set.filter(released_at=None)]
            hardware_isolated = isolation in (Isolation.HARDWARE, Isolation.DEVICE)
            other_tenants = any(each.tenant_id != tenant for each in beside)
            if other_tenants and not hardware_isolated and not gpu.node.cluster.allow_shared_gpus:
                continue
            state = GpuState()
            for each in on_gpu:
                held = profile_named(MODEL, each.profile, each.isolation)
                state = state.with_held(held, held.placed_at(each.placement.lower))
            found += max_additional(state, profile, starts)
    return found


def _is(cut: dict[str, object], profile: Profile) -> bool:
    return (cut["profile"], cut.get("isolation", "hardware")) == (profile.name, profile.isolation.value)


def place_until_full(sim: Simulation, owner: TenantContext, what: Offering) -> int:
    """Place as many leases as possible, and roll back."""
    placed = 0
    with transaction.atomic():
        while True:
            lease = sim.request_lease(owner, what)
            with tenant_scope(owner.tenant.pk):
                if not lease_placement.place_lease(
                    Lease.objects.select_related("offering").get(pk=lease.pk), now=sim.now
                ):
                    break
            placed += 1
        transaction.set_rollback(True)
    return placed


def randomize_fleet(sim: Simulation, owners: list[TenantContext], sold: list[Offering], chance: Random) -> None:
    """Bring a fleet into a random state."""
    for gpu in Gpu.objects.order_by("pk"):
        if chance.random() < 0.4:
            gpu.layout_policy, gpu.fixed_layout = LayoutPolicy.FIXED, chance.choice(LAYOUTS)
            gpu.save(update_fields=["layout_policy", "fixed_layout"])
    Cluster.objects.filter(name="north-1").update(allow_shared_gpus=chance.random() < 0.5)
    leases = [sim.request_lease(chance.choice(owners), chance.choice(sold)) for _ in range(30)]
    sim.run(60)
    for lease in chance.sample(leases, 15):
        sim.release_lease(lease)
    sim.run(60)
    some = chance.sample(sorted(Gpu.objects.values_list("pk", flat=True)), 2)
    Gpu.objects.filter(pk=some[0]).update(health="unhealthy")
    Gpu.objects.filter(pk=some[1]).update(out_of_service_since=sim.now)
    node = chance.choice(sorted(Node.objects.values_list("pk", flat=True)))
    Node.objects.filter(pk=node).update(state=chance.choice(("ready", "cordoned")))


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(3))
def test_available_capacity_equals_what_fits_and_what_can_be_leased(sim: Simulation, seed: int) -> None:
    create_fleet(
        SimulatedRack("north-1", REGION, MODEL, nodes=2, gpus_per_node=2),
        SimulatedRack("north-2", REGION, MODEL, nodes=1, gpus_per_node=3),
        SimulatedRack("south-1", "eu-south", MODEL, nodes=1, gpus_per_node=1),
    )
    chance, owners = Random(seed), [create_tenant("Kestrel"), create_tenant("Swift")]
    north = Offering.objects.select_related("gpu_model").filter(region=REGION, price_class="on_demand")
    sold = [north.get(profile=name) for name in PROFILES] + [soft_offering()]
    randomize_fleet(sim, owners, sold, chance)
    for owner in owners:
        with tenant_scope(owner.tenant.pk):
            counts = available_capacity.count_available(sold)
        fits = {what.pk: by_brute_force(what, owner.tenant.pk) for what in sold}
        had = {what.pk: place_until_full(sim, owner, what) for what in sold}
        assert counts == fits == had
