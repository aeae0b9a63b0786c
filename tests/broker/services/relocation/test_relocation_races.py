"""Relocations concurrent with other changes and lost nodes."""

from contextlib import suppress
from typing import Any

import pytest

from broker.models import Cluster, Gpu, Lease, Node, NodeState, Relocation, RelocationPlan, StaleLease
from broker.provisioners.base import Observation, ObservedState, ProvisionSpec
from broker.provisioners.simulated import SimulatedProvisioner
from broker.services.inventory import hardware
from broker.services.inventory.hardware import SimulatedRack
from broker.services.leases import relocation_steps
from broker.services.leases.lifecycle import stop_and_start
from broker.services.leases.lifecycle.stop_and_start import LeaseNotActive
from tenants.services.rls import tenant_scope
from tests.broker.services.relocation.scattered_leases import (
    accept_plan,
    assert_invariants,
    gpu_of,
    plan_log,
    relocations_of,
    scatter_leases,
)
from tests.broker.services.relocation.test_failed_relocations import MOVING, M, S, is_at_source, run_until
from tests.simulation import (
    MODEL,
    OPERATOR,
    REGION,
    Simulation,
    TenantContext,
    create_fleet,
    create_tenant,
    held_allocations,
    node_of,
    reload_lease,
    set_node_state,
)


def act_on_stale_lease(act: Any, lease: Lease, **how: Any) -> None:
    """Act as a worker with an outdated lease."""
    with tenant_scope(lease.tenant_id), suppress(StaleLease):
        act(lease, **how)


def was_notified(sim: Simulation) -> bool:
    return any(task == "broker.run_queue" and subject == f"{MODEL}|{REGION}" for _, _, task, subject, _ in sim.messages)


def attach_volume(sim: Simulation, owner: TenantContext, lease: Lease) -> None:
    with tenant_scope(lease.tenant_id):
        Lease.objects.filter(pk=lease.pk).update(volume=sim.create_volume(owner))


@pytest.mark.deep
def test_a_stale_start_at_the_target_does_not_revive_a_released_lease(
    sim: Simulation, plan: RelocationPlan, lease: Lease
) -> None:
    run_until(sim, plan, lease, S.STOPPING)
    read_before = reload_lease(lease)
    sim.release_lease(lease)
    act_on_stale_lease(relocation_steps.start_at_target, read_before, now=sim.now)
    assert_invariants(sim)
    sim.run_with_sweeps(60)
    assert (reload_lease(lease).state, held_allocations(lease)) == (S.RELEASED, [])
    assert_invariants(sim)


@pytest.mark.deep
def test_a_stale_return_to_the_source_leaves_a_started_lease_at_its_target(
    sim: Simulation, plan: RelocationPlan, move: Relocation, lease: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_until(sim, plan, lease, S.PROVISIONING)
    read_before, moving = reload_lease(lease), relocations_of(plan)[0]
    run_until(sim, plan, lease, S.ACTIVE)
    with monkeypatch.context() as at_once:  # its move was read before, too
        at_once.setattr(relocation_steps, "started_relocation", lambda _: moving)
        act_on_stale_lease(relocation_steps.return_to_source, read_before, why="not ready in time", now=sim.now)
    sim.run_with_sweeps(120)
    assert (reload_lease(lease).state, gpu_of(lease).pk) == (S.ACTIVE, move.to_gpu_id)
    assert_invariants(sim)


@pytest.mark.deep
def test_a_stale_stop_of_a_relocated_lease_is_refused_as_not_active(
    sim: Simulation, kestrel: TenantContext, plan: RelocationPlan, move: Relocation, lease: Lease
) -> None:
    attach_volume(sim, kestrel, lease)
    run_until(sim, plan, lease, S.STOPPING)
    read_before = reload_lease(lease)
    run_until(sim, plan, lease, S.PROVISIONING)
    with tenant_scope(lease.tenant_id), pytest.raises(LeaseNotActive):
        stop_and_start.stop_lease(read_before, actor=kestrel.actor, now=sim.now)
    assert_invariants(sim)
    sim.run_with_sweeps(60)
    assert (reload_lease(lease).state, gpu_of(lease).pk) == (S.ACTIVE, move.to_gpu_id)
    assert plan_log(plan).endswith("1:done done")


@pytest.mark.deep
def test_a_stop_that_cancels_a_relocation_triggers_scheduling_at_once(
    sim: Simulation, kestrel: TenantContext, plan: RelocationPlan, lease: Lease
) -> None:
    attach_volume(sim, kestrel, lease)
    run_until(sim, plan, lease, S.STOPPING)
    sim.messages.clear()
    sim.stop_lease(lease, kestrel)
    assert was_notified(sim)


def test_a_cancelled_plan_triggers_scheduling_when_its_slot_is_free(
    sim: Simulation, plan: RelocationPlan, lease: Lease
) -> None:
    run_until(sim, plan, lease, S.STOPPING)
    RelocationPlan.objects.filter(pk=plan.pk).update(state="cancelling")
    sim.messages.clear()
    with tenant_scope(lease.tenant_id):
        assert relocation_steps.start_at_target(reload_lease(lease), now=sim.now)
    assert was_notified(sim)


@pytest.mark.deep
def test_a_lease_returns_if_its_target_gpu_is_taken_out_of_service(
    sim: Simulation, plan: RelocationPlan, move: Relocation, lease: Lease
) -> None:
    run_until(sim, plan, lease, S.STOPPING)
    Gpu.objects.filter(pk=move.to_gpu_id).update(out_of_service_since=sim.now)
    sim.run_with_sweeps(60)
    assert (is_at_source(lease, move), reload_lease(lease).state) == (True, S.ACTIVE)
    assert plan_log(plan) == f"{MOVING} 1:returning 1:undone failed"
    assert relocations_of(plan)[0].why == "the target GPU is out of service"
    assert_invariants(sim)


@pytest.fixture
def plan_across_nodes(sim: Simulation) -> tuple[TenantContext, RelocationPlan]:
    """Two leases on a node each, and a plan that brings them together."""
    create_fleet(SimulatedRack("north-1", REGION, MODEL, nodes=2, gpus_per_node=1))
    kestrel = create_tenant("Kestrel")
    scatter_leases(sim, kestrel, kestrel, relocatable=True)
    return kestrel, accept_plan(sim)


def lose_node_while_stopping(sim: Simulation, plan: RelocationPlan) -> tuple[Lease, Relocation, Node]:
    move = relocations_of(plan)[0]
    lease = Lease(pk=move.lease_id, tenant_id=move.tenant_id)
    run_until(sim, plan, lease, S.STOPPING)
    node = Gpu.objects.select_related("node__cluster").get(pk=move.from_gpu_id).node
    set_node_state(node, NodeState.LOST, sim)
    return lease, move, node


@pytest.mark.deep
def test_a_lease_whose_node_is_lost_while_leaving_continues_at_its_target(
    sim: Simulation, plan_across_nodes: tuple[TenantContext, RelocationPlan]
) -> None:
    _, plan = plan_across_nodes
    lease, move, node = lose_node_while_stopping(sim, plan)
    sim.run_with_sweeps(90)
    assert (reload_lease(lease).state, gpu_of(lease).pk) == (S.ACTIVE, move.to_gpu_id)
    assert plan_log(plan).endswith("1:done done")
    with tenant_scope(lease.tenant_id):
        left = lease.allocations.get(gpu=move.from_gpu_id, released_at=None)
    assert left.leaving_since is not None  # not proven empty yet
    assert_invariants(sim)
    set_node_state(node, NodeState.READY, sim)
    sim.run_with_sweeps(60)
    assert [each.gpu_id for each in held_allocations(lease)] == [move.to_gpu_id]
    with tenant_scope(lease.tenant_id):
        assert not lease.allocations.filter(gpu=move.from_gpu_id, released_at=None).exists()
    assert_invariants(sim)


@pytest.mark.deep
def test_a_lease_with_a_volume_waits_for_its_lost_node(
    sim: Simulation, plan_across_nodes: tuple[TenantContext, RelocationPlan]
) -> None:
    kestrel, plan = plan_across_nodes
    attach_volume(sim, kestrel, Lease(pk=relocations_of(plan)[0].lease_id, tenant_id=relocations_of(plan)[0].tenant_id))
    lease, move, node = lose_node_while_stopping(sim, plan)
    sim.run_with_sweeps(90)
    assert reload_lease(lease).state == S.STOPPING
    set_node_state(node, NodeState.READY, sim)
    sim.run_with_sweeps(60)
    assert (reload_lease(lease).state, gpu_of(lease).pk) == (S.ACTIVE, move.to_gpu_id)
    assert_invariants(sim)


@pytest.mark.deep
def test_a_lease_with_a_lost_source_and_a_rejecting_target_is_placed_again(
    sim: Simulation, plan_across_nodes: tuple[TenantContext, RelocationPlan], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, plan = plan_across_nodes
    lease, move, node = lose_node_while_stopping(sim, plan)
    ensure = SimulatedProvisioner.ensure

    def not_there(self: SimulatedProvisioner, order: ProvisionSpec, **how: Any) -> Observation:
        if move.to_gpu_id in {each.gpu for each in order.slices}:
            return Observation(ObservedState.LOST, "its node does not accept it", last_seen=how["now"])
        return ensure(self, order, **how)

    with monkeypatch.context() as broken:
        broken.setattr(SimulatedProvisioner, "ensure", not_there)
        sim.run_with_sweeps(90)
    assert relocations_of(plan)[0].state == M.FAILED
    assert_invariants(sim)
    set_node_state(node, NodeState.READY, sim)
    sim.run_with_sweeps(180)
    assert reload_lease(lease).state == S.ACTIVE
    assert_invariants(sim)


@pytest.mark.deep
def test_a_lease_whose_source_and_target_nodes_are_lost_keeps_stopping(
    sim: Simulation, plan_across_nodes: tuple[TenantContext, RelocationPlan]
) -> None:
    _, plan = plan_across_nodes
    lease, _, _ = lose_node_while_stopping(sim, plan)
    for node in Node.objects.select_related("cluster"):
        if node.state != NodeState.LOST:
            hardware.set_node_state(node, NodeState.LOST, reason="a test", actor=OPERATOR, now=sim.now)
    sim.run_with_sweeps(90)
    assert reload_lease(lease).state == S.STOPPING
    assert_invariants(sim)
    assert Cluster.objects.count() == 1
    assert node_of(lease).state == NodeState.LOST


def test_a_stopping_lease_without_a_relocation_stays_on_its_lost_node(sim: Simulation, kestrel: TenantContext) -> None:
    volume = sim.create_volume(kestrel)
    still, _ = scatter_leases(sim, kestrel, kestrel, volume="")
    with tenant_scope(still.tenant_id):
        Lease.objects.filter(pk=still.pk).update(volume=volume)
    sim.stop_lease(still, kestrel)
    with tenant_scope(still.tenant_id):
        Lease.objects.filter(pk=still.pk).update(volume=None)
    set_node_state(node_of(still), NodeState.LOST, sim)
    sim.run_with_sweeps(90)
    assert reload_lease(still).state == S.STOPPING
