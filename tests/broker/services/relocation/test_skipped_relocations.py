"""Relocations that are skipped, and their reasons."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from broker.domain.lifecycle.relocation_states import RelocationPlanState, RelocationState
from broker.domain.repartition.gpu_layouts import GpuLayout
from broker.models import Cluster, Gpu, Lease, Node, Relocation, RelocationPlan
from broker.services.inventory.hardware import SimulatedRack
from broker.services.leases import relocation_records
from broker.services.relocation import (
    plan_decisions,
    plan_proposals,
    plan_reconciler,
    relocation_start,
    target_slots,
)
from broker.services.repartition import layout_rows as cutting
from tenants.services.errors import StaleVersion
from tenants.services.rls import staff_scope, tenant_scope
from tests.broker.services.relocation.scattered_leases import (
    NOTICE_S,
    accept_plan,
    assert_invariants,
    plan_log,
    propose_plan,
    relocations_of,
    scatter_leases,
)
from tests.simulation import (
    MODEL,
    OPERATOR,
    REGION,
    Simulation,
    TenantContext,
    create_fleet,
    create_gpus,
    create_tenant,
    lose_gpu,
    reload_lease,
)

Event = Callable[[Simulation, Lease, Relocation], None]
M, P = RelocationState, RelocationPlanState


@pytest.fixture
def kestrel(sim: Simulation) -> TenantContext:
    create_gpus(2)
    made = create_tenant("Kestrel")
    scatter_leases(sim, made, made, relocatable=True)
    return made


def change(lease: Lease, **fields: object) -> None:
    with tenant_scope(lease.tenant_id):
        Lease.objects.filter(pk=lease.pk).update(**fields)


def release(sim: Simulation, lease: Lease, move: Relocation) -> None:
    sim.release_lease(lease)


def withdraw_consent(sim: Simulation, lease: Lease, move: Relocation) -> None:
    change(lease, relocatable=False)


def mark_unreachable(sim: Simulation, lease: Lease, move: Relocation) -> None:
    change(lease, conditions={"unreachable": "nobody answers"})


def shorten(sim: Simulation, lease: Lease, move: Relocation) -> None:
    change(lease, ends_at=sim.now + timedelta(minutes=2))


def change_source_slot(sim: Simulation, lease: Lease, move: Relocation) -> None:
    with tenant_scope(lease.tenant_id):
        Relocation.objects.filter(pk=move.pk).update(from_start=5)


def fail_target_gpu(sim: Simulation, lease: Lease, move: Relocation) -> None:
    gpu = Gpu.objects.select_related("node__cluster").get(pk=move.to_gpu_id)
    lose_gpu(gpu, sim)


def repartition_target_gpu(sim: Simulation, lease: Lease, move: Relocation) -> None:
    cutting.store_gpu_layout(Gpu.objects.get(pk=move.to_gpu_id), GpuLayout.from_names(["3g.40gb"] * 2))


def unpublish_profile(sim: Simulation, lease: Lease, move: Relocation) -> None:
    Gpu.objects.filter(pk=move.to_gpu_id).update(published={"7g.80gb": [0]})


@pytest.mark.deep
@pytest.mark.parametrize(
    ("happens", "why"),
    [
        (release, "it is releas"),
        (withdraw_consent, "its tenant no longer allows it"),
        (mark_unreachable, "its current state is unknown"),
        (shorten, "it ends soon"),
        (change_source_slot, "it is no longer on the slice in the plan"),
        (fail_target_gpu, "the target GPU is out of service"),
        (repartition_target_gpu, "the target slice is in use"),
        (unpublish_profile, "the target slice is in use"),
    ],
)
def test_a_relocation_that_is_no_longer_possible_is_undone_with_a_reason(
    sim: Simulation, kestrel: TenantContext, happens: Event, why: str
) -> None:
    plan = propose_plan(sim)
    (move,) = relocations_of(plan)
    lease = Lease(pk=move.lease_id, tenant_id=move.tenant_id)
    happens(sim, reload_lease(lease), move)
    plan_decisions.accept_plan(plan, why="go", actor=OPERATOR, now=sim.now)
    sim.run_with_sweeps(NOTICE_S + 30)
    assert plan_log(plan) == "proposed accepted 1:undone failed"
    assert relocations_of(plan)[0].why.startswith(why)
    assert_invariants(sim)


@pytest.mark.deep
def test_a_slot_of_a_fixed_layout_gpu_is_a_valid_target(sim: Simulation, kestrel: TenantContext) -> None:
    plan = accept_plan(sim)
    (move,) = relocations_of(plan)
    cutting.store_gpu_layout(Gpu.objects.get(pk=move.to_gpu_id), GpuLayout.from_names(["1g.10gb"] * 7))
    sim.run_with_sweeps(NOTICE_S + 60)
    assert relocations_of(plan)[0].state == M.DONE


@pytest.mark.deep
def test_a_relocation_does_not_start_to_a_failed_gpu(
    sim: Simulation, kestrel: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = accept_plan(sim)
    (move,) = relocations_of(plan)
    with monkeypatch.context() as late:
        late.setattr(target_slots, "_target_obstacle", lambda *_: "")
        fail_target_gpu(sim, Lease(pk=move.lease_id), move)
        assert not relocation_start.begin_relocation(move, now=sim.now)
    assert relocations_of(plan)[0].state == M.NOTICED
    sim.run_with_sweeps(NOTICE_S + 30)
    assert relocations_of(plan)[0].state == M.UNDONE


def test_a_lease_already_being_relocated_is_skipped_by_another_plan(sim: Simulation, kestrel: TenantContext) -> None:
    plan = accept_plan(sim)
    (move,) = relocations_of(plan)
    other = RelocationPlan.objects.create(
        cluster=plan.cluster,
        gpu_model_id="A100-80GB",
        reason="another",
        cost_s=1,
        gain_milli=1,
        gpus=[],
        state_at=sim.now,
        proposed_at=sim.now,
    )
    fields = {each.attname: getattr(move, each.attname) for each in Relocation._meta.concrete_fields}
    again = {**fields, "id": "mov_again", "plan_id": other.pk, "state": M.PLANNED.value}
    with tenant_scope(move.tenant_id):
        Relocation.objects.create(**again)
    plan_decisions.accept_plan(other, why="go", actor=OPERATOR, now=sim.now)
    assert relocations_of(other)[0].why == "it is already being moved"


def test_a_stale_plan_decision_is_refused(sim: Simulation, kestrel: TenantContext) -> None:
    plan = propose_plan(sim)
    stale = RelocationPlan.objects.get(pk=plan.pk)
    plan_decisions.decline_plan(plan, why="no", actor=OPERATOR, now=sim.now)
    with pytest.raises(StaleVersion):
        plan_decisions.accept_plan(stale, why="go", actor=OPERATOR, now=sim.now)
    with pytest.raises(ValueError, match="cannot become"):
        relocation_records.set_plan_state(plan, P.DONE, why="", now=sim.now)


def test_a_relocation_changes_state_only_from_its_current_state(sim: Simulation, kestrel: TenantContext) -> None:
    plan = accept_plan(sim)
    (move,) = relocations_of(plan)
    with tenant_scope(move.tenant_id):
        stale = Relocation.objects.get(pk=move.pk)
        assert relocation_records.set_relocation_state(move, M.UNDONE, why="x", now=sim.now)
        assert not relocation_records.set_relocation_state(stale, M.MOVING, why="x", now=sim.now)
        with pytest.raises(ValueError, match="cannot become"):
            relocation_records.set_relocation_state(move, M.MOVING, why="x", now=sim.now)


def test_a_proposed_plan_is_not_executed(sim: Simulation, kestrel: TenantContext) -> None:
    plan = propose_plan(sim)
    plan_reconciler.reconcile_plan(plan.pk, now=sim.now)
    assert plan_log(plan) == "proposed"
    (move,) = relocations_of(plan)
    assert not relocation_start.begin_relocation(move, now=sim.now)


def test_a_plan_reconciled_too_early_waits_for_its_start_time(sim: Simulation, kestrel: TenantContext) -> None:
    plan = accept_plan(sim)
    plan_reconciler.reconcile_plan(plan.pk, now=sim.now)
    plan.refresh_from_db()
    assert (plan.due_at, plan.claimed_until) == (plan.not_before, None)


def test_no_plan_is_proposed_for_clusters_that_choose_gpus_themselves(sim: Simulation, kestrel: TenantContext) -> None:
    Cluster.objects.update(driver="dra", driver_options={"extended": True})
    assert plan_proposals.propose_plans(Cluster.objects.get().pk, now=sim.now) == []
    Cluster.objects.update(driver_options={"extended": False})
    assert relocations_of(propose_plan(sim))


@pytest.fixture
def two_nodes(sim: Simulation) -> RelocationPlan:
    """Propose to relocate a lease to another node."""
    create_fleet(SimulatedRack("north-1", REGION, MODEL, nodes=2, gpus_per_node=1))
    made = create_tenant("Kestrel")
    scatter_leases(sim, made, made, relocatable=True)
    return propose_plan(sim)


def target_node(move: Relocation) -> Node:
    return Node.objects.get(gpus=move.to_gpu_id)


def test_a_lease_is_not_relocated_to_a_node_with_less_cpu_than_it_has(
    sim: Simulation, two_nodes: RelocationPlan
) -> None:
    (move,) = relocations_of(two_nodes)
    change(Lease(pk=move.lease_id, tenant_id=move.tenant_id), cpu_milli=2000)
    plan_decisions.accept_plan(two_nodes, why="go", actor=OPERATOR, now=sim.now)
    sim.run_with_sweeps(NOTICE_S + 30)
    assert plan_log(two_nodes).split()[:3] == ["proposed", "accepted", "1:undone"]
    why = "the lease has 2 CPUs, and the target's node has 1.5 CPUs for such a slice"
    assert relocations_of(two_nodes)[0].why == why


def test_a_lease_with_more_than_its_offering_has_moves_to_a_node_with_enough(
    sim: Simulation, two_nodes: RelocationPlan
) -> None:
    (move,) = relocations_of(two_nodes)
    change(Lease(pk=move.lease_id, tenant_id=move.tenant_id), cpu_milli=2000)
    Node.objects.filter(pk=target_node(move).pk).update(cpu_milli=16_000)
    with tenant_scope(move.tenant_id):
        lease = Lease.objects.select_related("offering").get(pk=move.lease_id)
        assert target_slots.relocation_obstacle(lease, move, now=sim.now) == ""


def test_the_planner_leaves_out_leases_for_which_a_node_has_too_little(
    sim: Simulation, two_nodes: RelocationPlan
) -> None:
    for lease in active_leases():
        change(lease, cpu_milli=2000)
    assert plan_proposals.propose_plans(Cluster.objects.get().pk, now=sim.now) == []


def active_leases() -> list[Lease]:
    with staff_scope():
        return list(Lease.objects.filter(state="active"))


def test_a_lease_moves_within_its_node_whatever_it_was_promised(sim: Simulation, kestrel: TenantContext) -> None:
    (move,) = relocations_of(propose_plan(sim))
    change(Lease(pk=move.lease_id, tenant_id=move.tenant_id), cpu_milli=50_000)
    with tenant_scope(move.tenant_id):
        lease = Lease.objects.select_related("offering").get(pk=move.lease_id)
        assert target_slots.relocation_obstacle(lease, move, now=sim.now) == ""
