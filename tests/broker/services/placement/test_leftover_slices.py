"""Reuse of leftover MIG slices without repartitioning."""

from datetime import timedelta

import pytest

from broker.domain.geometry.gpu_state import PlacedSlice
from broker.domain.lifecycle.states import Isolation
from broker.domain.placement.warm_slices import NO_WARM_SLICES, WarmSlices
from broker.models import Cluster, Gpu, LayoutPolicy, Lease, NodeState
from broker.services.inventory.gpu_catalogue import profile_named
from broker.services.placement.shared_index import SharedIndex
from broker.services.queue import queue_scheduling
from tenants.services.rls import tenant_scope
from tests.simulation import (
    MODEL,
    REGION,
    Simulation,
    TenantContext,
    create_gpus,
    create_tenant,
    held_allocations,
    node_of,
    offering,
    set_node_state,
    transitions_of,
)

ONE, TWO, THREE, FOUR, SEVEN, WHOLE = "1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb", "whole-gpu"
HARDWARE = Isolation.HARDWARE


def at(profile: str, start: int) -> PlacedSlice:
    its = profile_named(MODEL, profile, HARDWARE)
    return PlacedSlice(its.placed_at(start), its)


def leftover_slices() -> list[WarmSlices | None]:
    """Return the leftover slices as a new process reads them."""
    with SharedIndex().up_to_date() as stock:
        return [gpu.warm for gpu in sorted(stock.gpus.values(), key=lambda gpu: gpu.index)]


def end_leases(sim: Simulation, *leases: Lease) -> None:
    for lease in leases:
        sim.release_lease(lease)
    sim.run(10)


def place_of(lease: Lease) -> tuple[int, int]:
    """Return the GPU index and the first unit of a lease's slice."""
    (place,) = held_allocations(lease)
    return Gpu.objects.get(pk=place.gpu_id).index, place.placement.lower


def two_halves(sim: Simulation, owner: TenantContext) -> tuple[int, int]:
    """Leave half of each GPU free, with leftover slices of different profiles."""
    create_gpus(2)
    for _ in range(2):
        sim.create_lease(owner, offering(FOUR))
    three, other = sim.create_lease(owner, offering(THREE)), sim.create_lease(owner, offering(THREE))
    first, second = place_of(three)[0], place_of(other)[0]
    end_leases(sim, three)
    two = sim.create_lease(owner, offering(TWO))
    assert place_of(two) == (first, 4)
    end_leases(sim, two, other)
    return first, second


def test_a_lease_reuses_a_leftover_slice_of_another_tenant(sim: Simulation) -> None:
    first, second = two_halves(sim, create_tenant("Kestrel"))
    assert (leftover_slices()[first], leftover_slices()[second]) == ({at(TWO, 4)}, {at(THREE, 4)})
    lease = sim.create_lease(create_tenant("Swift"), offering(THREE))
    assert place_of(lease) == (second, 4)
    assert [step.cause for step in transitions_of(lease) if step.after == "provisioning"] == [
        f"placed on north-1 / n01 / GPU {second} (reused an existing slice)"
    ]
    assert (leftover_slices()[first], leftover_slices()[second]) == ({at(TWO, 4)}, NO_WARM_SLICES)


def test_leases_placed_together_reuse_leftover_slices_first(sim: Simulation) -> None:
    kestrel = create_tenant()
    first, second = two_halves(sim, kestrel)
    requests = [sim.request_lease(kestrel, offering(THREE)) for _ in range(2)]
    queue_scheduling.run_queue((MODEL, REGION), now=sim.now)
    assert [place_of(lease) for lease in requests] == [(second, 4), (first, 4)]
    assert [" (reused an existing slice)" in transitions_of(lease)[-1].cause for lease in requests] == [True, False]


def test_a_whole_gpu_lease_removes_leftover_slices(sim: Simulation) -> None:
    create_gpus(1)
    kestrel = create_tenant()
    end_leases(sim, sim.create_lease(kestrel, offering(SEVEN)))
    assert leftover_slices() == [{at(SEVEN, 0)}]
    end_leases(sim, sim.create_lease(kestrel, offering(WHOLE)))
    assert leftover_slices() == [NO_WARM_SLICES]


@pytest.mark.parametrize("driver", ["dra", "device_plugin", "hami"])
def test_drivers_that_destroy_or_never_create_slices_leave_none(sim: Simulation, driver: str) -> None:
    create_gpus(1)
    end_leases(sim, sim.create_lease(create_tenant(), offering(ONE)))
    Cluster.objects.update(driver=driver)
    assert leftover_slices() == [None]


def test_fixed_layout_gpus_have_no_leftover_slices(sim: Simulation) -> None:
    create_gpus(1)
    end_leases(sim, sim.create_lease(create_tenant(), offering(ONE)))
    layout = [{"profile": THREE, "start": 0, "size": 4}]
    Gpu.objects.update(layout_policy=LayoutPolicy.FIXED, fixed_layout=layout)
    assert leftover_slices() == [None]


def test_leftover_slices_from_before_the_loss_of_a_node_are_ignored(sim: Simulation) -> None:
    create_gpus(1)
    kestrel = create_tenant()
    lease = sim.create_lease(kestrel, offering(ONE))
    node = node_of(lease)
    end_leases(sim, lease)
    sim.run(60)
    for state in (NodeState.LOST, NodeState.READY):
        set_node_state(node, state, sim)
    assert leftover_slices() == [NO_WARM_SLICES]
    end_leases(sim, sim.create_lease(kestrel, offering(SEVEN)))
    assert leftover_slices() == [{at(SEVEN, 0)}]


def test_a_leftover_slice_of_an_unknown_profile_is_ignored(sim: Simulation) -> None:
    create_gpus(1)
    lease = sim.create_lease(create_tenant(), offering(ONE))
    end_leases(sim, lease)
    with tenant_scope(lease.tenant_id):
        lease.allocations.update(profile="9g.90gb")
    assert leftover_slices() == [NO_WARM_SLICES]


def test_a_health_change_discards_leftover_slices(sim: Simulation) -> None:
    create_gpus(1)
    lease = sim.create_lease(create_tenant(), offering(ONE))
    gpu = Gpu.objects.get(pk=held_allocations(lease)[0].gpu_id)
    end_leases(sim, lease)
    later = sim.now + timedelta(minutes=1)
    Gpu.objects.filter(pk=gpu.pk).update(health_since=later)
    assert leftover_slices() == [NO_WARM_SLICES]
