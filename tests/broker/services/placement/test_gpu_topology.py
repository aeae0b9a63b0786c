"""Gangs of whole GPUs are placed by topology, or refused in words."""

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


def break_down(sim: Simulation, *broken: int) -> None:
    for gpu in Gpu.objects.filter(index__in=broken):
        set_gpu_health(gpu, GpuHealth.UNHEALTHY, reason="a test", actor=OPERATOR, now=sim.now)


def mend(sim: Simulation, index: int) -> None:
    set_gpu_health(Gpu.objects.get(index=index), GpuHealth.HEALTHY, reason="", actor=OPERATOR, now=sim.now)


def ask(sim: Simulation, owner: TenantContext, quantity: int = 2, **more: Any) -> Lease:
    lease = sim.request_lease(owner, offering("whole-gpu"), quantity=quantity, **more)
    sim.run()
    return reload_lease(lease)


def test_two_gpus_by_nvlink_are_two_that_a_bridge_joins(sim: Simulation, kestrel: TenantContext) -> None:
    break_down(sim, 0)
    lease = ask(sim, kestrel, topology="nvlink")
    assert (lease.same_node, lease.topology, indexes(lease)) == (True, "nvlink", [2, 3])


def test_a_gang_on_one_node_takes_near_gpus_where_it_may_and_any_where_it_must(
    sim: Simulation, kestrel: TenantContext
) -> None:
    break_down(sim, 0, 3)
    assert indexes(ask(sim, kestrel, same_node=True)) == [4, 5]
    assert indexes(ask(sim, kestrel, same_node=True)) == [6, 7]
    assert indexes(ask(sim, kestrel, same_node=True)) == [1, 2]


def test_a_gang_waits_for_gpus_that_are_near_enough_and_is_told_so(sim: Simulation, kestrel: TenantContext) -> None:
    break_down(sim, 0, 2, 4, 6)
    lease = ask(sim, kestrel, topology="nvlink")
    assert (lease.state, held_allocations(lease)) == (LeaseState.QUEUED, [])
    assert "free together on one node with NVLink between the GPUs" in lease.pending_reason
    mend(sim, 4)
    sim.run(5)
    assert indexes(reload_lease(lease)) == [4, 5]


def test_four_gpus_below_one_processor_are_not_torn_between_two(sim: Simulation, kestrel: TenantContext) -> None:
    break_down(sim, 1)
    assert indexes(ask(sim, kestrel, 4, topology="numa")) == [4, 5, 6, 7]
    waiting = ask(sim, kestrel, 4, topology="numa")
    assert waiting.state == LeaseState.QUEUED


@pytest.mark.deep
def test_a_lease_that_waits_for_nvlink_does_not_block_one_without(sim: Simulation, kestrel: TenantContext) -> None:
    break_down(sim, 0, 2, 4, 6)
    waiting, plain = ask(sim, kestrel, topology="nvlink"), ask(sim, kestrel, same_node=True)
    assert (waiting.state, plain.state) == (LeaseState.QUEUED, LeaseState.PROVISIONING)
    sim.run_with_sweeps(3605)
    assert reload_lease(waiting).state == LeaseState.QUEUED
    later = ask(sim, kestrel)
    assert later.state != LeaseState.QUEUED  # links that are out of service cannot come free: nobody waits behind


@pytest.mark.parametrize(("topology", "quantity", "most"), [("nvlink", 3, 2), ("numa", 5, 4)])
def test_links_that_no_node_has_are_refused_and_nothing_is_held(
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
def test_what_has_no_links_is_refused(
    sim: Simulation, kestrel: TenantContext, wanted: dict[str, Any], why: str
) -> None:
    what = offering(wanted.pop("profile"))
    with pytest.raises(InvalidValue, match=why):
        sim.request_lease(kestrel, what, **wanted)


def test_a_gang_whose_links_were_taken_out_meanwhile_waits(sim: Simulation, kestrel: TenantContext) -> None:
    waiting = sim.request_lease(kestrel, offering("whole-gpu"), quantity=2, topology="nvlink")
    Gpu.objects.update(fabric="")
    sim.run()
    assert reload_lease(waiting).state == LeaseState.QUEUED
    with tenant_scope(kestrel.tenant.pk):
        assert (
            available_capacity.preview_placement(offering("whole-gpu"), quantity=2, same_node=True, topology="nvlink")
            is None
        )


def test_what_could_ever_be_had_counts_the_gpus_of_a_node_that_are_near(
    sim: Simulation, kestrel: TenantContext
) -> None:
    break_down(sim, 0, 1, 2)
    gpu = offering("whole-gpu")
    values = {
        in_service: available_capacity.max_when_empty(
            gpu, quantity=4, same_node=True, topology="numa", in_service=in_service
        )
        for in_service in (False, True)
    }
    assert values == {False: 4, True: 4}
    break_down(sim, 7)
    assert (
        available_capacity.max_when_empty(gpu, quantity=4, same_node=True, topology="numa", in_service=True),
        available_capacity.max_when_empty(gpu, quantity=4, same_node=True, topology="nvlink", in_service=True),
    ) == (3, 2)


def test_links_are_worked_out_once_and_again_when_a_gpu_says_otherwise(sim: Simulation, kestrel: TenantContext) -> None:
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
