"""Failed relocations, and where they leave the lease."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.conf import LazySettings
from django.db import IntegrityError, transaction

from broker.domain.lifecycle.relocation_states import RelocationPlanState, RelocationState
from broker.domain.lifecycle.states import LeaseState
from broker.models import Gpu, Lease, Relocation, RelocationPlan
from broker.provisioners.base import Observation, ObservedState, ProvisionSpec
from broker.provisioners.simulated import SimulatedProvisioner
from broker.services.leases import relocation_consent
from broker.services.leases.abandoned_placements import SLICE_TAKEN
from broker.services.leases.lifecycle import stop_and_start
from broker.services.leases.relocation_consent import LeaseBeingRelocated
from broker.services.reconciler import lease_reconciler
from broker.services.relocation import plan_decisions, plan_reconciler
from broker.services.relocation.plan_decisions import PlanNotChangeable
from tenants.services.rls import tenant_scope
from tests.broker.services.relocation.scattered_leases import (
    NOTICE_S,
    accept_plan,
    assert_invariants,
    gpu_of,
    plan_log,
    relocations_of,
    scatter_leases,
)
from tests.simulation import (
    OPERATOR,
    Simulation,
    TenantContext,
    held_allocations,
    lose_gpu,
    offering,
    reload_lease,
    run_task,
    state_path,
)

S, M, P = LeaseState, RelocationState, RelocationPlanState
BEGINS = "proposed accepted 1:noticed"
MOVING = f"{BEGINS} running 1:moving"


def run_until(sim: Simulation, plan: RelocationPlan, lease: Lease, state: LeaseState) -> None:
    """Run in small steps until the lease reaches a state."""
    if sim.now < (plan.not_before or sim.now):
        sim.run_with_sweeps(NOTICE_S - 5)
    for _ in range(600):
        if reload_lease(lease).state == state and relocations_of(plan)[0].state != M.NOTICED:
            return
        sim.run(0.25)
    raise AssertionError(f"{reload_lease(lease).state}, {plan_log(plan)}")


def cancel(plan: RelocationPlan, sim: Simulation) -> None:
    plan.refresh_from_db()
    plan_decisions.cancel_plan(plan, why="not tonight", actor=OPERATOR, now=sim.now)


def is_at_source(lease: Lease, move: Relocation) -> bool:
    (place,) = held_allocations(lease)
    return (place.gpu_id, place.placement.lower) == (move.from_gpu_id, move.from_start)


def test_a_lease_returns_if_its_target_slot_went_to_another(
    sim: Simulation, plan: RelocationPlan, move: Relocation, lease: Lease
) -> None:
    run_until(sim, plan, lease, S.PROVISIONING)
    generation = reload_lease(lease).generation
    lease_reconciler.refuse_placement(lease.pk, lease.tenant_id, generation, why=SLICE_TAKEN, now=sim.now)
    sim.run_with_sweeps(30)
    assert is_at_source(lease, move)
    assert (reload_lease(lease).state, relocations_of(plan)[0].why) == (S.ACTIVE, SLICE_TAKEN)


@pytest.mark.deep
def test_an_occupied_target_slot_leaves_the_lease_at_its_source(
    sim: Simulation, kestrel: TenantContext, plan: RelocationPlan, move: Relocation, lease: Lease
) -> None:
    while gpu_of(sim.create_lease(kestrel, offering("1g.10gb"))).pk != move.to_gpu_id:
        pass
    for _ in range(6):
        sim.create_lease(kestrel, offering("1g.10gb"))
    sim.run_with_sweeps(NOTICE_S + 30)
    assert plan_log(plan) == f"{BEGINS} 1:undone failed"
    assert "is in use" in relocations_of(plan)[0].why
    assert is_at_source(lease, move)
    assert state_path(lease).endswith("active active")
    assert_invariants(sim)


@pytest.mark.deep
def test_postgresql_refuses_a_concurrently_occupied_target_slot(
    sim: Simulation,
    plan: RelocationPlan,
    lease: Lease,
    move: Relocation,
    monkeypatch: pytest.MonkeyPatch,
    kestrel: TenantContext,
) -> None:
    while gpu_of(sim.create_lease(kestrel, offering("1g.10gb"))).pk != move.to_gpu_id:
        pass
    for _ in range(6):
        sim.create_lease(kestrel, offering("1g.10gb"))
    monkeypatch.setattr("broker.services.relocation.target_slots._target_obstacle", lambda *_: "")
    sim.run_with_sweeps(NOTICE_S + 30)
    assert relocations_of(plan)[0].why == "the target slice was taken in the meantime"
    assert (is_at_source(lease, move), reload_lease(lease).state) == (True, S.ACTIVE)
    assert_invariants(sim)


def refuse(order: ProvisionSpec, now: datetime) -> Observation:
    return Observation(ObservedState.REFUSED, "no such thing here")


def lose(order: ProvisionSpec, now: datetime) -> Observation:
    return Observation(ObservedState.LOST, "its node does not accept it", last_seen=now)


def stay_pending(order: ProvisionSpec, now: datetime) -> Observation:
    return Observation(ObservedState.PENDING, "pulling image", again_in_s=5)


@pytest.mark.parametrize("answer", [refuse, lose, stay_pending])
@pytest.mark.deep
def test_a_lease_rejected_at_its_target_restarts_at_its_source(
    sim: Simulation,
    settings: LazySettings,
    plan: RelocationPlan,
    move: Relocation,
    lease: Lease,
    monkeypatch: pytest.MonkeyPatch,
    answer: Callable[[ProvisionSpec, datetime], Observation],
) -> None:
    ensure = SimulatedProvisioner.ensure

    def there_only(self: SimulatedProvisioner, order: ProvisionSpec, *, now: datetime) -> Observation:
        if move.to_gpu_id in {each.gpu for each in order.slices}:
            return answer(order, now)
        return ensure(self, order, now=now)

    monkeypatch.setattr(SimulatedProvisioner, "ensure", there_only)
    settings.PROVISION_TIMEOUT_S = 30
    sim.run_with_sweeps(NOTICE_S + 90)
    assert plan_log(plan) == f"{MOVING} 1:returning 1:undone failed"
    assert (is_at_source(lease, move), reload_lease(lease).state) == (True, S.ACTIVE)
    assert reload_lease(lease).generation == lease.generation + 2
    assert state_path(lease).endswith("stopping stopped queued provisioning queued provisioning active")
    assert_invariants(sim)


@pytest.mark.deep
@pytest.mark.parametrize("state", [S.STOPPING, S.PROVISIONING])
def test_cancelling_a_plan_reverts_relocations_in_progress(
    sim: Simulation, plan: RelocationPlan, move: Relocation, lease: Lease, state: LeaseState
) -> None:
    run_until(sim, plan, lease, state)
    cancel(plan, sim)
    sim.run_with_sweeps(60)
    assert plan_log(plan) == f"{MOVING} cancelling 1:returning 1:undone cancelled"
    assert (is_at_source(lease, move), reload_lease(lease).state) == (True, S.ACTIVE)
    assert_invariants(sim)


@pytest.mark.deep
def test_a_plan_cancelled_in_time_relocates_nothing(
    sim: Simulation, plan: RelocationPlan, move: Relocation, lease: Lease
) -> None:
    cancel(plan, sim)
    sim.run_with_sweeps(30)
    assert plan_log(plan) == f"{BEGINS} cancelling 1:undone cancelled"
    assert is_at_source(lease, move)
    with pytest.raises(PlanNotChangeable):
        cancel(plan, sim)
    with pytest.raises(PlanNotChangeable):
        plan_decisions.accept_plan(plan, why="after all", actor=OPERATOR, now=sim.now)


@pytest.mark.deep
def test_a_tenant_can_withdraw_consent_until_the_relocation_begins(
    sim: Simulation, kestrel: TenantContext, plan: RelocationPlan, move: Relocation, lease: Lease
) -> None:
    with tenant_scope(lease.tenant_id):
        relocation_consent.set_relocatable(lease, False, actor=kestrel.actor, now=sim.now)
    sim.run_with_sweeps(NOTICE_S + 30)
    assert plan_log(plan) == f"{BEGINS} 1:undone failed"
    assert relocations_of(plan)[0].why == "its tenant no longer allows it"
    assert is_at_source(lease, move)


@pytest.mark.deep
def test_withdrawing_consent_during_a_relocation_is_refused(
    sim: Simulation, kestrel: TenantContext, plan: RelocationPlan, lease: Lease
) -> None:
    run_until(sim, plan, lease, S.STOPPING)
    with tenant_scope(lease.tenant_id), pytest.raises(LeaseBeingRelocated):
        relocation_consent.set_relocatable(lease, False, actor=kestrel.actor, now=sim.now)


@pytest.mark.parametrize("state", [S.STOPPING, S.PROVISIONING])
@pytest.mark.deep
def test_a_lease_released_during_relocation_frees_both_slots(
    sim: Simulation, plan: RelocationPlan, lease: Lease, state: LeaseState
) -> None:
    run_until(sim, plan, lease, state)
    sim.release_lease(lease)
    sim.run_with_sweeps(60)
    assert (reload_lease(lease).state, held_allocations(lease)) == (S.RELEASED, [])
    assert plan_log(plan) == f"{MOVING} 1:undone failed"
    assert_invariants(sim)


@pytest.mark.deep
def test_a_lease_stopped_during_relocation_stays_stopped(sim: Simulation, kestrel: TenantContext) -> None:
    first, _ = scatter_leases(sim, kestrel, kestrel, relocatable=True)
    plan = accept_plan(sim)
    with tenant_scope(first.tenant_id):
        Lease.objects.filter(pk=relocations_of(plan)[0].lease_id).update(volume=sim.create_volume(kestrel))
    lease = Lease(pk=relocations_of(plan)[0].lease_id, tenant_id=first.tenant_id)
    run_until(sim, plan, lease, S.STOPPING)
    with tenant_scope(first.tenant_id):
        stop_and_start.stop_lease(reload_lease(lease), actor=kestrel.actor, now=sim.now)
    sim.run_with_sweeps(60)
    assert (reload_lease(lease).state, held_allocations(lease)) == (S.STOPPED, [])
    assert plan_log(plan) == f"{MOVING} 1:undone failed"
    assert_invariants(sim)


@pytest.mark.deep
def test_a_target_gpu_failure_returns_the_lease_to_its_source(
    sim: Simulation, plan: RelocationPlan, move: Relocation, lease: Lease
) -> None:
    run_until(sim, plan, lease, S.PROVISIONING)
    gpu = Gpu.objects.select_related("node__cluster").get(pk=move.to_gpu_id)
    lose_gpu(gpu, sim)
    sim.run_with_sweeps(60)
    assert (is_at_source(lease, move), reload_lease(lease).state) == (True, S.ACTIVE)
    assert_invariants(sim)


@pytest.mark.deep
def test_a_lease_that_crashes_workers_at_its_target_returns_to_its_source(
    sim: Simulation, plan: RelocationPlan, move: Relocation, lease: Lease
) -> None:
    run_until(sim, plan, lease, S.PROVISIONING)
    with tenant_scope(lease.tenant_id):
        Lease.objects.filter(pk=lease.pk).update(unfinished_claims=lease_reconciler.MAX_UNFINISHED_CLAIMS)
    sim.run_with_sweeps(60)
    assert plan_log(plan) == f"{MOVING} 1:returning 1:undone failed"
    assert (is_at_source(lease, move), reload_lease(lease).state) == (True, S.ACTIVE)
    assert_invariants(sim)


@pytest.mark.deep
def test_the_sweep_completes_a_relocation_without_messages(
    sim: Simulation, plan: RelocationPlan, move: Relocation, lease: Lease
) -> None:
    sim.run_with_sweeps(NOTICE_S - 5)
    for _ in range(40):
        sim.clock.at += timedelta(seconds=5)
        for hint in (*lease_reconciler.due_messages(now=sim.now), *plan_reconciler.due_plans(now=sim.now)):
            run_task(*hint, now=sim.now)
        sim.messages.clear()  # workers were killed, or Valkey was away
    assert plan_log(plan).endswith("1:done done")
    assert gpu_of(lease).pk == move.to_gpu_id
    assert_invariants(sim)


def test_a_lease_has_one_open_relocation(sim: Simulation, plan: RelocationPlan, move: Relocation) -> None:
    again = {each.attname: getattr(move, each.attname) for each in Relocation._meta.concrete_fields}
    with tenant_scope(move.tenant_id), pytest.raises(IntegrityError), transaction.atomic():
        Relocation.objects.create(**{**again, "id": "mov_another", "n": 2})


def test_a_plan_claimed_by_another_worker_is_left_alone(sim: Simulation, plan: RelocationPlan) -> None:
    plan.refresh_from_db()
    RelocationPlan.objects.filter(pk=plan.pk).update(claimed_until=sim.now.replace(year=2027))
    sim.clock.at = plan.not_before or sim.now
    plan_reconciler.reconcile_plan(plan.pk, now=sim.now)
    assert plan_log(plan) == BEGINS
    assert plan_reconciler.due_plans(now=sim.now) == []
