"""Late or repeated steps of relocations."""

from datetime import datetime
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import IntegrityError

from broker.models import Cluster, Lease, Relocation, RelocationPlan, StaleLease
from broker.provisioners.base import Observation, ObservedState, ProvisionSpec
from broker.provisioners.simulated import SimulatedProvisioner
from broker.services.leases import relocation_consent, relocation_steps
from broker.services.leases.lifecycle import stop_and_start
from broker.services.relocation import plan_decisions, plan_proposals, relocation_start
from tenants.services.rls import tenant_scope
from tests.broker.services.relocation.scattered_leases import (
    NOTICE_S,
    accept_plan,
    assert_invariants,
    plan_log,
    relocations_of,
    scatter_leases,
)
from tests.broker.services.relocation.test_failed_relocations import MOVING, M, S, cancel, is_at_source, run_until
from tests.simulation import OPERATOR, Simulation, TenantContext, held_allocations, reload_lease


def do_nothing(*_: Any, **__: Any) -> None:
    """Replace a step before which the worker crashed."""


@pytest.mark.deep
def test_a_lease_relocated_twice_is_notified_before_each_relocation(
    sim: Simulation, plan: RelocationPlan, move: Relocation, lease: Lease
) -> None:
    cancel(plan, sim)
    sim.run_with_sweeps(30)
    (again,) = plan_proposals.propose_plans(Cluster.objects.get().pk, now=sim.now)
    (first,) = relocations_of(again)
    back = {each.attname: getattr(first, each.attname) for each in Relocation._meta.concrete_fields} | {
        "id": "mov_back",
        "n": 2,
        "from_gpu_id": first.to_gpu_id,
        "from_start": first.to_start,
        "to_gpu_id": first.from_gpu_id,
        "to_start": first.from_start,
    }
    with tenant_scope(first.tenant_id):
        Relocation.objects.create(**back)
    beginning_of_it = plan_log(again)
    accepted_plan = accept_again(again, sim)
    assert plan_log(accepted_plan) == f"{beginning_of_it} accepted 1:noticed"
    sim.run_with_sweeps(2 * NOTICE_S + 120)
    assert plan_log(accepted_plan).endswith("1:done 2:noticed 2:moving 2:done done")
    assert is_at_source(lease, first)
    assert_invariants(sim)


def accept_again(plan: RelocationPlan, sim: Simulation) -> RelocationPlan:

    plan_decisions.accept_plan(plan, why="there and back", actor=OPERATOR, now=sim.now)
    plan.refresh_from_db()
    return plan


def test_no_plan_is_proposed_for_a_pool_with_a_plan_in_progress(sim: Simulation, plan: RelocationPlan) -> None:
    assert plan_proposals.propose_plans(Cluster.objects.get().pk, now=sim.now) == []


def test_a_lease_without_consent_has_no_announced_relocation(sim: Simulation, kestrel: TenantContext) -> None:
    still, _ = scatter_leases(sim, kestrel, kestrel)
    with tenant_scope(still.tenant_id):
        assert relocation_consent.announced_relocation(still) is None


def test_an_integrity_error_other_than_an_occupied_slot_is_raised(
    sim: Simulation, plan: RelocationPlan, move: Relocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Violated(Exception):
        diag = SimpleNamespace(constraint_name="some_other_promise")

    def broken(*_: Any, **__: Any) -> bool:
        raise IntegrityError("some other promise") from Violated()

    monkeypatch.setattr(relocation_start, "reserve_target", broken)
    with pytest.raises(IntegrityError, match="some other promise"):
        relocation_start.begin_relocation(move, now=sim.now)


@pytest.mark.deep
def test_a_plan_cancelled_while_its_lease_starts_is_retried_with_fresh_state(
    sim: Simulation, plan: RelocationPlan, move: Relocation, lease: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_until(sim, plan, lease, S.PROVISIONING)
    go_back, looks = relocation_steps.return_to_source, []

    def too_late_once(lease: Lease, **how: Any) -> bool:
        looks.append(lease.state)
        if len(looks) == 1:
            raise StaleLease(lease.pk)
        return go_back(lease, **how)

    monkeypatch.setattr(relocation_steps, "return_to_source", too_late_once)
    cancel(plan, sim)
    sim.run_with_sweeps(60)
    assert len(looks) > 1
    assert reload_lease(lease).state == S.ACTIVE
    assert plan_log(plan).endswith("cancelled")
    assert_invariants(sim)


@pytest.mark.deep
def test_a_relocation_of_an_active_lease_is_completed_at_the_next_reconciliation(
    sim: Simulation, plan: RelocationPlan, lease: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_until(sim, plan, lease, S.PROVISIONING)
    with monkeypatch.context() as died:
        died.setattr("broker.services.reconciler.observation_outcomes.relocation_steps.finish_relocation", do_nothing)
        died.setattr("broker.services.relocation.plan_reconciler._check_progress", do_nothing)
        run_until(sim, plan, lease, S.ACTIVE)
    sim.run_with_sweeps(60)
    assert plan_log(plan).endswith("1:done done")
    assert_invariants(sim)


@pytest.mark.deep
def test_a_lease_rejected_at_target_and_source_is_queued_and_its_relocation_fails(
    sim: Simulation, plan: RelocationPlan, lease: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_until(sim, plan, lease, S.STOPPING)

    def nowhere(self: SimulatedProvisioner, order: ProvisionSpec, *, now: datetime) -> Observation:
        return Observation(ObservedState.LOST, "its node does not accept it", last_seen=now)

    with monkeypatch.context() as broken:
        broken.setattr(SimulatedProvisioner, "ensure", nowhere)
        for _ in range(240):
            if relocations_of(plan)[0].state == M.FAILED:
                break
            sim.run(0.5)
    assert "is queued" in relocations_of(plan)[0].why
    assert plan_log(plan).startswith(f"{MOVING} 1:returning 1:failed")


@pytest.mark.deep
def test_a_lease_found_stopped_during_relocation_stays_stopped(
    sim: Simulation, kestrel: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    scatter_leases(sim, kestrel, kestrel, relocatable=True)
    plan = accept_plan(sim)
    (move,) = relocations_of(plan)
    with tenant_scope(move.tenant_id):
        Lease.objects.filter(pk=move.lease_id).update(volume=sim.create_volume(kestrel))
    lease = Lease(pk=move.lease_id, tenant_id=move.tenant_id)
    run_until(sim, plan, lease, S.STOPPING)
    with monkeypatch.context() as died:
        died.setattr(relocation_steps, "cancel_relocation", do_nothing)
        died.setattr(relocation_steps, "start_at_target", lambda *_, **__: False)
        with tenant_scope(move.tenant_id):
            stop_and_start.stop_lease(reload_lease(lease), actor=kestrel.actor, now=sim.now)
        sim.run_with_sweeps(60)
    assert (reload_lease(lease).state, held_allocations(lease)) == (S.STOPPED, [])
    assert relocations_of(plan)[0].why == "stopped by the tenant during a relocation"
    assert_invariants(sim)
