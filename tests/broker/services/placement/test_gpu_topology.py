"""Placement of whole-GPU gangs by interconnect topology."""

from typing import Any

import pytest

from broker.domain.lifecycle.states import LeaseState
from broker.domain.placement.gangs.topology import GpuLink
from broker.models import Gpu, GpuHealth, Lease
from broker.services.inventory.hardware import SimulatedRack, set_gpu_health
from broker.services.leases.lease_requests import PlacementImpossible
from broker.services.placement import available_capacity
from broker.services.placement.shared_index import SharedIndex
from tenants.services.errors import InvalidValue
from tenants.services.rls import tenant_scope
from tests.simulation import (
    MODEL,
    OPERATOR,
    REGION,
    Simulation,
    TenantContext,
    create_fleet,
    create_tenant,
    held_allocations,
    offering,
    reload_lease,
)

PAIRS = SimulatedRack("north-1", REGION, MODEL, nodes=1, gpus_per_node=8, fabric=2, numa=4)


@pytest.fixture
def kestrel(sim: Simulation) -> TenantContext:
    create_fleet(PAIRS)
    return create_tenant("Kestrel")


def indexes(lease: Lease) -> list[int]:
    return sorted(Gpu.objects.get(pk=place.gpu_id).index for place in held_allocations(lease))


def mark_unhealthy(sim: Simulation, *broken: int) -> None:
    for gpu in Gpu.objects.filter(index__in=broken):
        set_gpu_health(gpu, GpuHealth.UNHEALTHY, reason="a test", actor=OPERATOR, now=sim.now)


def mark_healthy(sim: Simulation, index: int) -> None:
    set_gpu_health(Gpu.objects.get(index=index), GpuHealth.HEALTHY, reason="", actor=OPERATOR, now=sim.now)


def request_gang(sim: Simulation, owner: TenantContext, quantity: int = 2, **more: Any) -> Lease:
    lease = sim.request_lease(owner, offering("whole-gpu"), quantity=quantity, **more)
    sim.run()
    return reload_lease(lease)


def test_a_pair_requested_with_nvlink_gets_gpus_joined_by_a_bridge(sim: Simulation, kestrel: TenantContext) -> None:
    mark_unhealthy(sim, 0)
    lease = request_gang(sim, kestrel, topology="nvlink")
    assert (lease.same_node, lease.topology, indexes(lease)) == (True, "nvlink", [2, 3])


def test_a_same_node_gang_prefers_linked_gpus_but_accepts_others(sim: Simulation, kestrel: TenantContext) -> None:
    mark_unhealthy(sim, 0, 3)
    assert indexes(request_gang(sim, kestrel, same_node=True)) == [4, 5]
    assert indexes(request_gang(sim, kestrel, same_node=True)) == [6, 7]
    assert indexes(request_gang(sim, kestrel, same_node=True)) == [1, 2]


def test_a_gang_waits_for_linked_gpus_with_a_pending_reason(sim: Simulation, kestrel: TenantContext) -> None:
    mark_unhealthy(sim, 0, 2, 4, 6)
    lease = request_gang(sim, kestrel, topology="nvlink")
    assert (lease.state, held_allocations(lease)) == (LeaseState.QUEUED, [])
    assert "free together on one node with NVLink between the GPUs" in lease.pending_reason
    mark_healthy(sim, 4)
    sim.run(5)
    assert indexes(reload_lease(lease)) == [4, 5]


def test_a_numa_gang_is_placed_within_one_numa_node(sim: Simulation, kestrel: TenantContext) -> None:
    mark_unhealthy(sim, 1)
    assert indexes(request_gang(sim, kestrel, 4, topology="numa")) == [4, 5, 6, 7]
    waiting = request_gang(sim, kestrel, 4, topology="numa")
    assert waiting.state == LeaseState.QUEUED


@pytest.mark.deep
def test_a_lease_that_waits_for_nvlink_does_not_block_one_without(sim: Simulation, kestrel: TenantContext) -> None:
    mark_unhealthy(sim, 0, 2, 4, 6)
    waiting, plain = request_gang(sim, kestrel, topology="nvlink"), request_gang(sim, kestrel, same_node=True)
    assert (waiting.state, plain.state) == (LeaseState.QUEUED, LeaseState.PROVISIONING)
    sim.run_with_sweeps(3605)
    assert reload_lease(waiting).state == LeaseState.QUEUED
    later = request_gang(sim, kestrel)
    assert later.state != LeaseState.QUEUED  # links that are out of service cannot come free: they block no other lease


@pytest.mark.parametrize(("topology", "quantity", "most"), [("nvlink", 3, 2), ("numa", 5, 4)])
def test_a_gang_larger_than_any_linked_group_is_refused(
    sim: Simulation, kestrel: TenantContext, topology: str, quantity: int, most: int
) -> None:
    with pytest.raises(PlacementImpossible) as refusal:
        sim.request_lease(kestrel, offering("whole-gpu"), quantity=quantity, topology=topology)
    assert refusal.value.extra["most"] == most
    assert "or allow other interconnects" in refusal.value.fix.text
    with tenant_scope(kestrel.tenant.pk):
        assert not Lease.objects.exists()


def test_a_topology_request_is_refused_where_no_links_are_known(sim: Simulation) -> None:
    create_fleet()
    with pytest.raises(PlacementImpossible, match="with NVLink between the GPUs holds at most 0"):
        sim.request_lease(create_tenant(), offering("whole-gpu"), quantity=2, topology="nvlink")


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        ({"profile": "whole-gpu", "quantity": 2, "topology": "bus"}, "'bus' is not a valid GPU interconnect"),
        ({"profile": "whole-gpu", "quantity": 1, "topology": "numa"}, "A single GPU has no interconnect"),
        ({"profile": "3g.40gb", "quantity": 2, "topology": "nvlink"}, "only whole GPUs have an interconnect"),
    ],
)
def test_an_invalid_topology_request_is_refused(
    sim: Simulation, kestrel: TenantContext, wanted: dict[str, Any], why: str
) -> None:
    what = offering(wanted.pop("profile"))
    with pytest.raises(InvalidValue, match=why):
        sim.request_lease(kestrel, what, **wanted)


def test_a_gang_waits_if_its_links_disappear_after_the_request(sim: Simulation, kestrel: TenantContext) -> None:
    waiting = sim.request_lease(kestrel, offering("whole-gpu"), quantity=2, topology="nvlink")
    Gpu.objects.update(fabric="")
    sim.run()
    assert reload_lease(waiting).state == LeaseState.QUEUED
    with tenant_scope(kestrel.tenant.pk):
        assert (
            available_capacity.preview_placement(offering("whole-gpu"), quantity=2, same_node=True, topology="nvlink")
            is None
        )


def test_the_maximum_gang_size_counts_only_linked_gpus(sim: Simulation, kestrel: TenantContext) -> None:
    mark_unhealthy(sim, 0, 1, 2)
    gpu = offering("whole-gpu")
    values = {
        in_service: available_capacity.max_when_empty(
            gpu, quantity=4, same_node=True, topology="numa", in_service=in_service
        )
        for in_service in (False, True)
    }
    assert values == {False: 4, True: 4}
    mark_unhealthy(sim, 7)
    assert (
        available_capacity.max_when_empty(gpu, quantity=4, same_node=True, topology="numa", in_service=True),
        available_capacity.max_when_empty(gpu, quantity=4, same_node=True, topology="nvlink", in_service=True),
    ) == (3, 2)


def test_gpu_links_are_cached_until_a_gpu_reports_others(sim: Simulation, kestrel: TenantContext) -> None:
    keeper = SharedIndex()
    with keeper.up_to_date() as stock:
        (node,) = stock.by_node
        known = stock.links[node]
        assert stock.links[node] is known
        assert known.largest_linked_count(known.gpus, GpuLink.BRIDGE) == 2
        assert (dict(stock.links), len(stock.links)) == ({node: known}, 1)
        assert "nod_unheard_of" not in stock.links
    Gpu.objects.update(fabric="0")
    with keeper.up_to_date() as stock:
        assert stock.links[node].largest_linked_count(known.gpus, GpuLink.BRIDGE) == 8
