"""Relocations that free slots for a queued lease."""

from datetime import timedelta
from typing import Any

import pytest

from broker.domain.lifecycle.relocation_states import RelocationPlanState
from broker.domain.lifecycle.states import LeaseState
from broker.models import Cluster, Gpu, Lease, Relocation, RelocationPlan, Volume
from broker.services.inventory.hardware import SimulatedRack
from broker.services.placement import available_capacity
from broker.services.queue import open_capacity
from broker.services.relocation import plan_decisions, plan_proposals, relocation_choice
from broker.services.relocation.plan_decisions import PlanNotChangeable
from tenants.services.rls import tenant_scope
from tests.broker.services.relocation.scattered_leases import (
    NOTICE_S,
    assert_invariants,
    gpu_of,
    plan_log,
    propose_plan,
    relocations_of,
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
    held_allocations,
    offering,
    reload_lease,
    soft_offering,
)

WHOLE, S = "whole-gpu", LeaseState


@pytest.fixture
def kestrel(sim: Simulation) -> TenantContext:
    return create_tenant("Kestrel")


@pytest.fixture
def swift(sim: Simulation) -> TenantContext:
    return create_tenant("Swift")


def create_leases_on_separate_gpus(sim: Simulation, owner: TenantContext, count: int, **wanted: Any) -> list[Lease]:
    """Place so many small leases on a GPU each."""
    stay, fillers = [], []
    for _ in range(count):
        stay.append(sim.create_lease(owner, offering("1g.10gb"), max_duration_s=7200, **wanted))
        fillers += [sim.create_lease(owner, offering("1g.10gb")) for _ in range(6)]
    for filler in fillers:
        sim.release_lease(filler)
    sim.run(30)
    assert len({held_allocations(lease)[0].gpu_id for lease in stay}) == count
    return [reload_lease(lease) for lease in stay]


def request_queued_lease(sim: Simulation, owner: TenantContext, profile: str = WHOLE, **wanted: Any) -> Lease:
    """Request a lease for which no slot is free."""
    lease = sim.request_lease(owner, offering(profile), **wanted)
    sim.run()
    assert reload_lease(lease).state == S.QUEUED
    return lease


def accept(sim: Simulation, plan: RelocationPlan) -> None:
    plan_decisions.accept_plan(plan, why="it has waited long enough", actor=OPERATOR, now=sim.now)


@pytest.mark.deep
def test_a_queued_gang_gets_the_gpus_of_a_node_freed_by_relocations(
    sim: Simulation, kestrel: TenantContext, swift: TenantContext
) -> None:
    create_fleet(SimulatedRack("north-1", REGION, MODEL, nodes=2, gpus_per_node=2))
    small = create_leases_on_separate_gpus(sim, kestrel, 2, relocatable=True)
    pinned = sim.create_lease(swift, offering(WHOLE), max_duration_s=7200)
    gang = request_queued_lease(sim, swift, quantity=2, same_node=True)
    plan = propose_plan(sim)
    assert plan.reason == f"Frees 2 × {gang.offering.label} together on one node for a queued lease."
    assert (plan.room_for, plan.gain_milli) == (gang.pk, 2000)
    drawn = {gpu["name"]: gpu for gpu in plan.gpus}
    assert [gpu["after"] for gpu in drawn.values() if gpu.get("for")] == [[[0, 8, 2]]] * 2
    accept(sim, plan)
    sim.run_with_sweeps(NOTICE_S + 90)
    plan.refresh_from_db()
    assert plan.state == RelocationPlanState.DONE
    assert {reload_lease(each).state for each in (*small, pinned, gang)} == {S.ACTIVE}
    assert len({place.gpu.node_id for place in held_allocations(gang)}) == 1
    assert len({gpu_of(lease).pk for lease in small}) == 1
    assert_invariants(sim)


@pytest.mark.deep
def test_younger_leases_do_not_take_slots_freed_for_a_waiting_gang(
    sim: Simulation, kestrel: TenantContext, swift: TenantContext
) -> None:
    create_gpus(4)
    create_leases_on_separate_gpus(sim, kestrel, 3, relocatable=True)
    gang = request_queued_lease(sim, swift, quantity=3)
    plan = propose_plan(sim)
    assert len(relocations_of(plan)) == 2
    accept(sim, plan)
    sim.run_with_sweeps(NOTICE_S - 5)
    while "1:done" not in plan_log(plan):
        sim.run(1)
    merlin = create_tenant("Merlin")
    with tenant_scope(merlin.tenant.pk):
        assert available_capacity.count_available([offering(WHOLE)]) == {offering(WHOLE).pk: 2}
        assert open_capacity.count_open_capacity([offering(WHOLE)], now=sim.now) == {
            offering(WHOLE).pk: 0
        }  # they are for the gang
    younger = sim.request_lease(merlin, offering(WHOLE))
    sim.run(1)
    assert reload_lease(younger).pending_reason == (
        f"Waits behind an older request for 3 × {gang.offering.label}, for which other leases are being moved now."
    )
    sim.run_with_sweeps(90)
    assert (reload_lease(gang).state, reload_lease(younger).state) == (S.ACTIVE, S.QUEUED)
    assert "older" not in reload_lease(younger).pending_reason
    assert_invariants(sim)


def test_a_plan_frees_a_whole_gpu_for_a_queued_lease(
    sim: Simulation, kestrel: TenantContext, swift: TenantContext
) -> None:
    create_gpus(2)
    create_leases_on_separate_gpus(sim, kestrel, 2, relocatable=True)
    waits = request_queued_lease(sim, swift)
    plan = propose_plan(sim)
    assert (plan.room_for, plan.reason) == (
        waits.pk,
        f"Frees {waits.offering.label} for a queued lease.",
    )
    assert plan.gain_milli == 1000


def create_leases_on_two_nodes(sim: Simulation, owner: TenantContext, **wanted: Any) -> list[Lease]:
    """Place a relocatable lease on each of two nodes."""
    create_fleet(SimulatedRack("north-1", REGION, MODEL, nodes=2, gpus_per_node=1))
    return create_leases_on_separate_gpus(sim, owner, 2, relocatable=True, **wanted)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("profile", "wanted", "milli"),
    [
        ("3g.40gb", {"quantity": 2, "same_node": True}, 1000),
        ("3g.40gb", {"quantity": 3}, 1500),
        ("7g.80gb", {}, 1000),
    ],
)
def test_a_relocation_frees_larger_slices_for_a_queued_lease(
    sim: Simulation, kestrel: TenantContext, swift: TenantContext, profile: str, wanted: dict[str, Any], milli: int
) -> None:
    small = create_leases_on_two_nodes(sim, kestrel)
    waits = request_queued_lease(sim, swift, profile, **wanted)
    plan = propose_plan(sim)
    assert (plan.room_for, len(relocations_of(plan)), plan.gain_milli) == (waits.pk, 1, milli)
    accept(sim, plan)
    sim.run_with_sweeps(NOTICE_S + 60)
    assert {reload_lease(each).state for each in (*small, waits)} == {S.ACTIVE}
    assert_invariants(sim)


@pytest.mark.deep
def test_a_plan_frees_linked_gpus_for_a_topology_request(
    sim: Simulation, kestrel: TenantContext, swift: TenantContext
) -> None:
    create_fleet(SimulatedRack("north-1", REGION, MODEL, nodes=1, gpus_per_node=4, fabric=2, numa=4))
    create_leases_on_separate_gpus(sim, kestrel, 3, relocatable=True)
    waits = request_queued_lease(sim, swift, quantity=2, topology="nvlink")
    plan = propose_plan(sim)
    assert plan.room_for == waits.pk
    given = Gpu.objects.filter(pk__in=[gpu["gpu"] for gpu in plan.gpus if gpu.get("for")])
    assert {gpu.index // 2 for gpu in given} in ({0}, {1})
    assert given.count() == 2


@pytest.mark.deep
def test_a_lease_that_relocations_cannot_help_does_not_block_other_plans(
    sim: Simulation, kestrel: TenantContext, swift: TenantContext
) -> None:
    create_leases_on_two_nodes(sim, kestrel)
    request_queued_lease(sim, swift, quantity=2)  # both small ones would have nowhere to go
    share = sim.request_lease(swift, soft_offering())
    sim.run()
    assert reload_lease(share).state == S.QUEUED  # of no pool in which anything is moved
    waits = request_queued_lease(sim, swift)
    assert propose_plan(sim).room_for == waits.pk


@pytest.mark.deep
def test_a_lease_that_fits_without_relocation_gets_no_plan(
    sim: Simulation, kestrel: TenantContext, swift: TenantContext
) -> None:
    create_fleet(SimulatedRack("north-1", REGION, MODEL, nodes=1, gpus_per_node=3))
    create_leases_on_separate_gpus(sim, kestrel, 2, relocatable=True)
    waits = sim.request_lease(swift, offering(WHOLE))
    with tenant_scope(swift.tenant.pk):
        Lease.objects.filter(pk=waits.pk).update(pending_reason="nobody has looked again since")
    assert propose_plan(sim).room_for == ""


@pytest.mark.deep
def test_a_plan_without_a_waiting_lease_is_cancelled(
    sim: Simulation, kestrel: TenantContext, swift: TenantContext
) -> None:
    small = create_leases_on_two_nodes(sim, kestrel)
    waits = request_queued_lease(sim, swift)
    plan = propose_plan(sim)
    accept(sim, plan)
    sim.release_lease(waits)
    sim.run_with_sweeps(NOTICE_S + 60)
    plan.refresh_from_db()
    assert (plan.state, reload_lease(small[0]).generation) == (RelocationPlanState.CANCELLED, small[0].generation)
    assert [move.why for move in relocations_of(plan)] == ["cancelled before it started"]
    assert "cancelling" in plan_log(plan)


def test_a_plan_without_a_queued_lease_cannot_be_accepted(
    sim: Simulation, kestrel: TenantContext, swift: TenantContext
) -> None:
    create_leases_on_two_nodes(sim, kestrel)
    waits = request_queued_lease(sim, swift)
    plan = propose_plan(sim)
    sim.release_lease(waits)
    with pytest.raises(PlanNotChangeable, match="No queued lease"):
        accept(sim, plan)
    sim.run(30)
    (left,) = plan_proposals.propose_plans(Cluster.objects.get().pk, now=sim.now)
    assert left.room_for == ""


@pytest.mark.deep
def test_an_equally_good_proposal_is_kept_and_an_impossible_one_replaced(
    sim: Simulation, kestrel: TenantContext, swift: TenantContext
) -> None:
    create_fleet(SimulatedRack("north-1", REGION, MODEL, nodes=1, gpus_per_node=3))
    small = create_leases_on_separate_gpus(sim, kestrel, 3, relocatable=True)
    waits = request_queued_lease(sim, swift)
    first = propose_plan(sim)
    (move,) = relocations_of(first)
    with tenant_scope(move.tenant_id):  # the planner would choose another GPU now
        Relocation.objects.filter(pk=move.pk).update(to_start=5 if move.to_start == 1 else 1)
    assert propose_plan(sim) == first
    sim.release_lease(next(each for each in small if each.pk == move.lease_id))
    sim.run(30)
    assert reload_lease(waits).state != S.QUEUED
    again = request_queued_lease(sim, swift)
    second = propose_plan(sim)
    assert (second.room_for, second == first) == (again.pk, False)
    first.refresh_from_db()
    assert first.state == RelocationPlanState.DECLINED


def test_relocations_per_tenant_and_day_are_limited(
    sim: Simulation, kestrel: TenantContext, swift: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_leases_on_two_nodes(sim, kestrel)
    request_queued_lease(sim, swift)
    monkeypatch.setattr(relocation_choice, "MAX_PER_TENANT_AND_DAY", 1)
    plan = propose_plan(sim)
    with tenant_scope(kestrel.tenant.pk):
        Relocation.objects.filter(plan=plan).update(state="done", state_at=sim.now)
    assert plan_proposals.propose_plans(Cluster.objects.get().pk, now=sim.now) == []
    with tenant_scope(kestrel.tenant.pk):
        Relocation.objects.filter(plan=plan).update(state_at=sim.now - timedelta(days=1, seconds=1))
    assert len(plan_proposals.propose_plans(Cluster.objects.get().pk, now=sim.now)) == 1


def test_a_lease_bound_to_or_planned_on_another_cluster_gets_no_plan(
    sim: Simulation, kestrel: TenantContext, swift: TenantContext
) -> None:
    create_leases_on_two_nodes(sim, kestrel)
    home_of_it = sim.create_volume(swift, "home")
    waits = request_queued_lease(sim, swift, volume=home_of_it.pk)
    here = Cluster.objects.get()
    far = Cluster.objects.create(name="far", region=REGION, driver=here.driver, created_at=sim.now)
    with tenant_scope(swift.tenant.pk):
        Volume.objects.filter(pk=home_of_it.pk).update(cluster=far)
    assert [plan.room_for for plan in plan_proposals.propose_plans(here.pk, now=sim.now)] == [""]
    with tenant_scope(swift.tenant.pk):
        Volume.objects.filter(pk=home_of_it.pk).update(cluster=here)
    (plan,) = plan_proposals.propose_plans(here.pk, now=sim.now)
    assert plan.room_for == waits.pk
    RelocationPlan.objects.filter(pk=plan.pk).update(cluster=far)
    assert [plan.room_for for plan in plan_proposals.propose_plans(here.pk, now=sim.now)] == [""]


def test_a_cluster_is_planned_if_a_lease_waits_and_others_are_relocatable(
    sim: Simulation, kestrel: TenantContext, swift: TenantContext
) -> None:
    def planned(hours: float = 0) -> list[str]:
        at = (sim.now + timedelta(hours=hours)).replace(minute=0, second=0)
        return [subject for _, subject, _ in plan_proposals.clusters_to_plan(now=at if hours else sim.now)]

    small = create_leases_on_two_nodes(sim, kestrel)
    here = Cluster.objects.get().pk
    sim.run(2 * plan_proposals.SWEEP_S)
    assert planned() == []
    assert planned(hours=3) == [here]  # at noon, even without a queued lease
    waits = request_queued_lease(sim, swift)
    assert planned() == [here]
    with tenant_scope(kestrel.tenant.pk):
        Lease.objects.filter(pk__in=[each.pk for each in small]).update(relocatable=False)
    assert (planned(), planned(hours=3)) == ([], [])
    assert reload_lease(waits).state == S.QUEUED


@pytest.mark.deep
def test_a_cluster_is_planned_again_after_another_lease_on_its_gpus_ended(
    sim: Simulation, kestrel: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    def planned() -> list[str]:
        return [subject for _, subject, _ in plan_proposals.clusters_to_plan(now=sim.now)]

    def one_more_comes_and_goes() -> None:
        sim.release_lease(sim.create_lease(kestrel, offering("1g.10gb")))
        sim.run(30)

    create_leases_on_two_nodes(sim, kestrel)
    here = Cluster.objects.get().pk
    assert planned() == [here]  # what had filled the GPUs is gone
    plan = propose_plan(sim)
    assert (plan.room_for, plan.gain_milli) == ("", 1000)
    plan_decisions.decline_plan(plan, why="not today", actor=OPERATOR, now=sim.now)
    sim.run(2 * plan_proposals.SWEEP_S)
    one_more_comes_and_goes()
    assert planned() == []  # it would be the same again
    monkeypatch.setattr(plan_proposals, "WINDOW_S", 1800)
    sim.run(1800)
    assert planned() == []
    one_more_comes_and_goes()
    assert planned() == [here]
