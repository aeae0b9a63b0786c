"""Several tenants: isolation, sharing and queue order."""

import pytest

from broker.models import Cluster, NodeState
from broker.services.inventory import hardware
from broker.services.leases.lifecycle import eviction
from tests.cluster.behaviours.world import World
from tests.controlplane.nodes import GpuNode
from tests.simulation import OPERATOR, reload_lease

SHARED = {
    "none": (GpuNode(gpus=1, replicas=4, sharing="time-slicing"), "quarter"),
    "soft": (GpuNode(gpus=1, replicas=2, sharing="mps"), "half"),
}
ways = pytest.mark.parametrize("isolation", SHARED)


def test_ending_one_tenants_lease_does_not_affect_another_tenant(world: World) -> None:
    world.add_cluster(GpuNode(gpus=2))
    what = world.offering()
    leases = [world.request_lease(world.add_tenant(name), what) for name in ("Kestrel", "Osprey")]
    world.until_all(leases, "active")
    world.end(leases[0])
    world.wait(60)
    world.until(leases[1], "active")


def test_slices_in_hardware_are_shared_by_tenants(world: World) -> None:
    world.add_cluster(GpuNode(gpus=1, cut=1, mig={"1g.10gb": 2}))
    what = world.offering("1g.10gb")
    world.until_all([world.request_lease(world.add_tenant(name), what) for name in ("Kestrel", "Osprey")], "active")


@ways
def test_tenants_share_no_gpu_with_software_isolation_by_default(isolation: str, world: World) -> None:
    machine, profile = SHARED[isolation]
    world.add_cluster(machine)
    what = world.offering(profile, isolation=isolation)
    first = world.run(world.add_tenant("Kestrel"), what)
    foreign_lease = world.request_lease(world.add_tenant("Osprey"), what)
    world.wait(30)
    assert reload_lease(foreign_lease).state == "queued"
    world.end(first)
    world.until(foreign_lease, "active")


@ways
def test_tenants_share_a_gpu_with_software_isolation_if_the_cluster_allows_it(isolation: str, world: World) -> None:
    machine, profile = SHARED[isolation]
    world.add_cluster(machine)
    Cluster.objects.update(allow_shared_gpus=True)
    what = world.offering(profile, isolation=isolation)
    world.until_all([world.request_lease(world.add_tenant(name), what) for name in ("Kestrel", "Osprey")], "active")


def test_the_oldest_queued_lease_is_placed_first(world: World) -> None:
    world.add_cluster(GpuNode(gpus=1))
    what, homes = world.offering(), [world.add_tenant(name) for name in ("Kestrel", "Osprey", "Merlin")]
    first = world.run(homes[0], what)
    queue = []
    for each in homes:
        queue.append(world.request_lease(each, what))
        world.wait(5)
    previous = first
    for each in queue:
        world.end(previous)
        world.until(each, "active")
        previous = each


def test_a_small_lease_overtakes_a_gang_that_does_not_fit(world: World) -> None:
    world.add_cluster(GpuNode(gpus=2))
    kestrel, what = world.add_tenant(), world.offering()
    world.run(kestrel, what)
    gang = world.request_lease(kestrel, what, quantity=2)
    world.wait(5)
    world.run(kestrel, what)
    world.wait(30)
    assert reload_lease(gang).state == "queued"


def test_a_lease_released_in_the_queue_does_not_block_the_next(world: World) -> None:
    world.add_cluster(GpuNode(gpus=1))
    kestrel, what = world.add_tenant(), world.offering()
    first, second, third = (
        world.run(kestrel, what),
        world.request_lease(kestrel, what),
        world.request_lease(kestrel, what),
    )
    world.end(second)
    world.end(first)
    world.until(third, "active")


def test_a_node_that_joins_wakes_the_queue(world: World) -> None:
    site = world.add_cluster(GpuNode(gpus=1))
    kestrel, what = world.add_tenant(), world.offering()
    world.run(kestrel, what)
    waiting = world.request_lease(kestrel, what)
    world.wait(5)
    world.add_node(site, GpuNode(gpus=1))
    world.until(waiting, "active")


def test_a_cordoned_node_keeps_its_leases_and_takes_no_new_ones(world: World) -> None:
    site = world.add_cluster(GpuNode(gpus=2))
    kestrel, what = world.add_tenant(), world.offering()
    runs = world.run(kestrel, what)
    (node,) = site.nodes
    hardware.set_node_state(node, NodeState.CORDONED, reason="repair", actor=OPERATOR, now=world.sim.now)
    waiting = world.request_lease(kestrel, what)
    world.wait(60)
    assert (reload_lease(runs).state, reload_lease(waiting).state) == ("active", "queued")
    node.refresh_from_db()
    hardware.set_node_state(node, NodeState.READY, reason="repaired", actor=OPERATOR, now=world.sim.now)
    world.until(waiting, "active")


def test_evicting_a_node_ends_all_its_leases(world: World) -> None:
    site = world.add_cluster(GpuNode(gpus=2))
    kestrel, what = world.add_tenant(), world.offering()
    leases = [world.request_lease(kestrel, what) for _ in range(2)]
    world.until_all(leases, "active")
    eviction.evict_node_leases(site.nodes[0], why="the hall is closed", actor=OPERATOR, now=world.sim.now)
    world.until_all(leases, "released")
    assert world.count_leases() == 0


def test_an_offering_that_no_node_can_serve_waits_with_a_reason(world: World) -> None:
    world.add_cluster(GpuNode(gpus=1))
    what = world.offering("1g.10gb")
    waiting = world.request_lease(world.add_tenant(), what)
    world.wait(10)
    world.record(world.pending_reason(waiting))
    assert world.pending_reason(waiting)


def test_leases_are_placed_on_two_clusters(world: World) -> None:
    world.add_cluster(GpuNode(gpus=1))
    world.add_cluster(GpuNode(gpus=1))
    kestrel, what = world.add_tenant(), world.offering()
    leases = [world.request_lease(kestrel, what) for _ in range(2)]
    world.until_all(leases, "active")
    world.end(*leases)
    assert world.count_leases() == 0


def test_a_gang_never_spans_clusters(world: World) -> None:
    """Its pods find each other by names that only one cluster knows."""
    world.add_cluster(GpuNode(gpus=1))
    world.add_cluster(GpuNode(gpus=1))
    kestrel, what = world.add_tenant(), world.offering()
    assert world.refused(lambda: world.request_lease(kestrel, what, quantity=2)).code == "placement-impossible"
    larger = world.add_cluster(GpuNode(gpus=2))
    gang = world.run(kestrel, what, quantity=2)
    assert world.host_of(gang) == larger.hosts[0]
