"""Relocation of consenting leases, from plan to completion."""

from datetime import timedelta
from itertools import pairwise

import pytest

from broker.domain.lifecycle.relocation_states import RelocationPlanState, RelocationState
from broker.domain.lifecycle.states import LeaseState
from broker.models import Allocation, Lease, SimulatedPod
from broker.provisioners.base import spec_name
from tenants.models import QuotaKind
from tests.broker.services.relocation.scattered_leases import (
    NOTICE_S,
    accept_plan,
    assert_invariants,
    gpu_of,
    plan_log,
    propose_plan,
    relocations_of,
    scatter_leases,
)
from tests.simulation import (
    Simulation,
    TenantContext,
    create_gpus,
    create_tenant,
    held_allocations,
    reload_lease,
    state_path,
    transitions_of,
)

S, M, P = LeaseState, RelocationState, RelocationPlanState
BEFORE = "requested queued provisioning active"
MOVED = "active stopping stopped queued provisioning active"


@pytest.fixture
def kestrel(sim: Simulation) -> TenantContext:
    create_gpus(2)
    return create_tenant("Kestrel")


@pytest.fixture
def merlin(kestrel: TenantContext) -> TenantContext:
    return create_tenant("Merlin")


def active_seconds(lease: Lease) -> int:
    spans = [(a, b) for a, b in pairwise(transitions_of(lease)) if a.after == S.ACTIVE]
    return int(sum((b.at - a.at).total_seconds() for a, b in spans))


def test_a_proposed_plan_changes_nothing_and_states_cost_and_gain(
    sim: Simulation, kestrel: TenantContext, merlin: TenantContext
) -> None:
    one, _ = scatter_leases(sim, kestrel, merlin, relocatable=True)
    before = gpu_of(one)
    plan = propose_plan(sim)
    (move,) = relocations_of(plan)
    assert plan.reason == "One GPU with few slices can be emptied and then sold whole."
    assert (plan.cost_s, plan.gain_milli) == (move.cost_s, move.gain_milli)
    assert 5 < plan.cost_s < 15  # as starts took here lately
    assert plan.gain_milli == 1000  # a whole GPU
    assert len(plan.gpus) == 2
    assert [len(gpu["after"]) for gpu in plan.gpus] in ([0, 2], [2, 0])
    sim.run_with_sweeps(60)
    assert (gpu_of(one), reload_lease(one).state, state_path(one)) == (before, S.ACTIVE, BEFORE)
    assert plan_log(plan) == "proposed"


@pytest.mark.deep
def test_an_accepted_plan_moves_its_lease_after_notice_and_frees_the_old_gpu(
    sim: Simulation, kestrel: TenantContext, merlin: TenantContext
) -> None:
    both = scatter_leases(sim, kestrel, merlin, relocatable=True)
    plan = accept_plan(sim)
    (move,) = relocations_of(plan)
    lease = next(each for each in both if each.pk == move.lease_id)
    assert move.not_before == sim.now + timedelta(seconds=NOTICE_S)
    assert "will be moved to another GPU, not before" in transitions_of(lease)[-1].cause
    sim.run_with_sweeps(NOTICE_S - 10)
    assert (reload_lease(lease).state, plan_log(plan)) == (S.ACTIVE, "proposed accepted 1:noticed")
    sim.run_with_sweeps(60)
    plan.refresh_from_db()
    assert plan_log(plan) == "proposed accepted 1:noticed running 1:moving 1:done done"
    assert state_path(lease) == f"{BEFORE} {MOVED}"
    assert gpu_of(both[0]) == gpu_of(both[1]) == move.to_gpu
    assert [place.placement.lower for place in held_allocations(lease)] == [move.to_start]
    assert not Allocation.objects.filter(gpu=move.from_gpu, released_at=None).exists()
    assert_invariants(sim)
    assert SimulatedPod.objects.filter(name=spec_name(lease.pk, reload_lease(lease).generation)).exists()
    assert not SimulatedPod.objects.filter(name=spec_name(lease.pk, lease.generation)).exists()


@pytest.mark.deep
def test_the_downtime_of_a_relocation_is_not_charged_and_extends_the_end(
    sim: Simulation, kestrel: TenantContext, merlin: TenantContext
) -> None:
    both = scatter_leases(sim, kestrel, merlin, relocatable=True)
    (move,) = relocations_of(accept_plan(sim))
    lease = next(each for each in both if each.pk == move.lease_id)
    owner = kestrel if lease.tenant_id == kestrel.tenant.pk else merlin
    used = owner.quota_used(QuotaKind.UNITS)
    sim.run_with_sweeps(NOTICE_S + 60)
    moved = reload_lease(lease)
    downtime_s = next(
        (back.at - left.at).total_seconds()
        for left in transitions_of(lease)
        if left.after == S.STOPPING
        for back in transitions_of(lease)
        if back.after == S.ACTIVE and back.seq > left.seq
    )
    assert downtime_s > 0
    assert moved.ends_at == lease.ends_at + timedelta(seconds=downtime_s)
    assert owner.quota_used(QuotaKind.UNITS) == used
    sim.release_lease(lease)
    sim.run(30)
    assert active_seconds(lease) == (reload_lease(lease).ended_at - lease.active_at).total_seconds() - downtime_s
    assert_invariants(sim)


def test_a_lease_without_consent_is_never_relocated(
    sim: Simulation, kestrel: TenantContext, merlin: TenantContext
) -> None:
    scatter_leases(sim, kestrel, merlin)
    with pytest.raises(ValueError, match="not enough values"):
        propose_plan(sim)
