"""Spot leases are reclaimed by notice for on-demand requests."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connections

from broker.domain.lifecycle.spot_terms import SpotReclaimState
from broker.domain.lifecycle.states import EndReason
from broker.models import Gpu, Lease, Node, NodeState, Offering, PromisedSlot, ReclaimNotice, SimulatedPod, SpotReclaim
from broker.provisioners.base import ClusterUnreachable, CommandFailed, Observation, ObservedState
from broker.provisioners.simulated import SimulatedProvisioner
from broker.services.leases import attempt_records, checkpoints
from broker.services.queue import queue_scheduling, spot_reclaims
from broker.services.reconciler import lease_reconciler
from ports import clock, mail, outbox
from tenants.domain.roles import Role
from tenants.models import Quota, QuotaKind
from tenants.services import tenants
from tenants.services.actors import SYSTEM
from tenants.services.errors import InvalidValue
from tenants.services.rls import system_scope, tenant_scope
from tests.database import OwnDatabase
from tests.simulation import (
    MODEL,
    NOW,
    REGION,
    Simulation,
    TenantContext,
    create_gpus,
    create_tenant,
    held_allocations,
    lose_gpu,
    node_of,
    offering,
    reload_lease,
    set_node_state,
    soft_offering,
    transitions_of,
)

NOTICE = timedelta(minutes=5)
PAST_MINIMUM = timedelta(minutes=10, seconds=1)


def spot(profile: str = "whole-gpu") -> Any:
    return offering(profile, price_class="spot")


def slots_of(lease: Lease) -> set[tuple[str, int]]:
    return {(place.gpu_id, place.placement.lower) for place in held_allocations(lease)}


def notices() -> list[ReclaimNotice]:
    with system_scope():
        return list(ReclaimNotice.objects.order_by("id"))


@pytest.fixture
def swift(sim: Simulation) -> TenantContext:
    create_gpus(8)
    return create_tenant("Swift")


@pytest.fixture
def four_of_eight(sim: Simulation, swift: TenantContext) -> list[Lease]:
    """Rent four of eight GPUs as spot, for longer than the minimum runtime."""
    leases = [sim.create_lease(swift, spot(), max_duration_s=8 * 3600) for _ in range(4)]
    sim.clock.at += PAST_MINIMUM
    return leases


def test_an_on_demand_request_for_five_of_eight_starts_after_the_notice_of_a_spot_lease(
    sim: Simulation, four_of_eight: list[Lease]
) -> None:
    kestrel = create_tenant("Kestrel")
    gang = sim.request_lease(kestrel, offering("whole-gpu"), quantity=5)
    sim.run()
    began = sim.now
    (notice,) = notices()
    assert not spot_reclaims.give_notice_for(reload_lease(gang), now=sim.now)
    assert notice.reclaim_at - began >= NOTICE
    victim = next(lease for lease in four_of_eight if lease.pk == notice.lease_id)
    held = slots_of(victim)
    sim.run_with_sweeps(295)
    assert [reload_lease(lease).state for lease in (gang, *four_of_eight)] == ["queued", *["active"] * 4]
    assert reload_lease(gang).pending_reason.startswith("Starts after ")
    sim.run_with_sweeps(20)
    ended = reload_lease(victim)
    assert (ended.state, ended.end_reason, ended.ended_at) == ("released", "preempted", notice.reclaim_at)
    gang = reload_lease(gang)
    assert gang.state == "active"
    assert gang.active_at is not None
    assert gang.active_at - notice.reclaim_at < timedelta(seconds=15)
    assert held < slots_of(gang)
    assert [reload_lease(lease).state for lease in four_of_eight].count("active") == 3
    assert SpotReclaim.objects.get().state == "done"
    assert not PromisedSlot.objects.exists()
    assert [step.reason for step in transitions_of(victim) if step.after == "releasing"] == ["preempted"]


def test_free_gpus_are_used_before_any_spot_lease_gets_notice(sim: Simulation, four_of_eight: list[Lease]) -> None:
    gang = sim.create_lease(create_tenant("Kestrel"), offering("whole-gpu"), quantity=4)
    assert gang.state == "active"
    assert not notices()


def test_a_request_that_never_fits_gives_no_notice(sim: Simulation, four_of_eight: list[Lease]) -> None:
    kestrel = create_tenant("Kestrel")
    sim.create_lease(kestrel, offering("whole-gpu"), quantity=2)
    sim.request_lease(kestrel, offering("whole-gpu"), quantity=7)
    sim.run_with_sweeps(30)
    assert not notices()


def test_spot_never_reclaims_spot(sim: Simulation, four_of_eight: list[Lease]) -> None:
    gang = sim.request_lease(create_tenant("Kestrel"), spot(), quantity=5)
    sim.run_with_sweeps(30)
    assert reload_lease(gang).state == "queued"
    assert not notices()


@pytest.mark.deep
def test_no_lease_gets_notice_before_its_minimum_runtime(sim: Simulation, swift: TenantContext) -> None:
    for _ in range(8):
        sim.create_lease(swift, spot(), max_duration_s=8 * 3600)
    sim.request_lease(create_tenant("Kestrel"), offering("whole-gpu"))
    sim.run_with_sweeps(500)
    assert not notices()
    sim.run_with_sweeps(200)
    (notice,) = notices()
    with system_scope():
        lease = Lease.objects.get(pk=notice.lease_id)
    assert lease.active_at is not None
    assert notice.noticed_at - lease.active_at >= timedelta(seconds=600)


def test_the_lease_with_least_work_lost_gets_notice(sim: Simulation, swift: TenantContext) -> None:
    leases = [sim.create_lease(swift, spot(), max_duration_s=8 * 3600) for _ in range(8)]
    sim.clock.at += PAST_MINIMUM
    sim.request_lease(create_tenant("Kestrel"), offering("whole-gpu"))
    sim.run()
    assert [notice.lease_id for notice in notices()] == [leases[-1].pk]


def test_a_second_request_does_not_count_on_the_same_slices(sim: Simulation, four_of_eight: list[Lease]) -> None:
    kestrel, merlin = create_tenant("Kestrel"), create_tenant("Merlin")
    first = sim.request_lease(kestrel, offering("whole-gpu"), quantity=5)
    second = sim.request_lease(merlin, offering("whole-gpu"))
    small = sim.request_lease(merlin, offering("1g.10gb"))
    sim.run()
    assert len(notices()) == 3
    assert len({notice.lease_id for notice in notices()}) == 3
    assert [reload_lease(lease).state for lease in (first, second, small)] == ["queued"] * 3
    sim.run_with_sweeps(330)
    assert [reload_lease(lease).state for lease in (first, second, small)] == ["active"] * 3
    assert [reload_lease(lease).state for lease in four_of_eight].count("active") == 1


def test_nobody_behind_takes_slices_that_became_free_early(sim: Simulation, four_of_eight: list[Lease]) -> None:
    gang = sim.request_lease(create_tenant("Kestrel"), offering("whole-gpu"), quantity=6)
    sim.run()
    first = next(lease for lease in four_of_eight if lease.pk == notices()[0].lease_id)
    sim.release_lease(reload_lease(first))
    behind = sim.request_lease(create_tenant("Merlin"), spot("1g.10gb"))
    sim.run_with_sweeps(60)
    assert [reload_lease(lease).state for lease in (gang, behind)] == ["queued", "queued"]
    sim.run_with_sweeps(270)
    assert [reload_lease(lease).state for lease in (gang, behind)] == ["active", "queued"]


@pytest.mark.parametrize("reason", [EndReason.BY_TENANT, EndReason.BUDGET, EndReason.BY_OPERATOR])
def test_a_lease_that_ends_during_its_notice_frees_its_slice_at_once(
    sim: Simulation, four_of_eight: list[Lease], reason: EndReason
) -> None:
    gang = sim.request_lease(create_tenant("Kestrel"), offering("whole-gpu"), quantity=5)
    sim.run_with_sweeps(60)
    (notice,) = notices()
    victim = next(lease for lease in four_of_eight if lease.pk == notice.lease_id)
    sim.release_lease(reload_lease(victim), reason)
    sim.run_with_sweeps(15)
    assert reload_lease(gang).state == "active"
    assert reload_lease(victim).end_reason == reason
    assert [notice.state for notice in notices()] == ["ended_early"]


@pytest.mark.parametrize("how", ["the request is withdrawn", "it is placed elsewhere"])
def test_a_notice_is_withdrawn_when_it_is_no_longer_needed(sim: Simulation, swift: TenantContext, how: str) -> None:
    kestrel = create_tenant("Kestrel")
    other = sim.create_lease(kestrel, offering("whole-gpu"), max_duration_s=8 * 3600)
    leases = [sim.create_lease(swift, spot(), max_duration_s=8 * 3600) for _ in range(7)]
    sim.clock.at += PAST_MINIMUM
    waiting = sim.request_lease(kestrel, offering("whole-gpu"))
    sim.run_with_sweeps(60)
    (notice,) = notices()
    sim.release_lease(reload_lease(waiting if how == "the request is withdrawn" else other))
    sim.run_with_sweeps(300)
    assert reload_lease(waiting).state == ("released" if how == "the request is withdrawn" else "active")
    assert [reload_lease(lease).state for lease in leases] == ["active"] * 7
    victim = next(lease for lease in leases if lease.pk == notice.lease_id)
    assert reload_lease(victim).reclaim_at is None
    assert transitions_of(victim)[-1].cause.startswith("notice withdrawn, it keeps running: the request was")
    assert [notice.state for notice in notices()] == ["withdrawn"]
    assert not PromisedSlot.objects.exists()


def test_a_gpu_lost_during_the_notice_withdraws_it_and_another_is_given(
    sim: Simulation, four_of_eight: list[Lease]
) -> None:
    gang = sim.request_lease(create_tenant("Kestrel"), offering("whole-gpu"), quantity=5)
    sim.run()
    promised = PromisedSlot.objects.select_related("gpu")
    (notice,) = notices()
    victim = next(lease for lease in four_of_eight if lease.pk == notice.lease_id)
    free = promised.exclude(gpu_id=held_allocations(victim)[0].gpu_id).first()
    assert free is not None
    lose_gpu(free.gpu, sim)
    sim.run_with_sweeps(10)
    assert [notice.state for notice in notices()] == ["withdrawn", "given", "given"]
    sim.run_with_sweeps(330)
    assert reload_lease(gang).state == "active"
    assert [reload_lease(lease).state for lease in four_of_eight].count("active") == 2


def test_a_lease_whose_gpu_is_lost_during_its_notice_ends_as_device_lost(
    sim: Simulation, four_of_eight: list[Lease]
) -> None:
    sim.request_lease(create_tenant("Kestrel"), offering("whole-gpu"), quantity=5)
    sim.run_with_sweeps(30)
    (notice,) = notices()
    victim = next(lease for lease in four_of_eight if lease.pk == notice.lease_id)
    lose_gpu(held_allocations(victim)[0].gpu, sim)
    sim.run_with_sweeps(330)
    assert reload_lease(victim).end_reason == "device_lost"


def test_slices_are_reclaimed_on_the_gpu_that_costs_fewest_leases(sim: Simulation) -> None:
    create_gpus(2)
    swift, kestrel = create_tenant("Swift"), create_tenant("Kestrel")
    small = [sim.create_lease(swift, spot("1g.10gb"), max_duration_s=8 * 3600) for _ in range(7)]
    large = sim.create_lease(swift, spot("7g.80gb"), max_duration_s=8 * 3600)
    sim.clock.at += PAST_MINIMUM
    waiting = sim.request_lease(kestrel, offering("3g.40gb"))
    sim.run()
    assert [notice.lease_id for notice in notices()] == [large.pk]
    beside = sim.request_lease(kestrel, offering("4g.40gb"))
    sim.run()
    assert len(notices()) == 1
    sim.run_with_sweeps(330)
    assert [reload_lease(lease).state for lease in (waiting, beside)] == ["active", "active"]
    assert [reload_lease(lease).state for lease in small] == ["active"] * 7


def test_a_preempted_lease_that_asked_for_it_is_queued_again_and_runs_on(sim: Simulation, swift: TenantContext) -> None:
    leases = [sim.create_lease(swift, spot(), max_duration_s=8 * 3600, requeue_when_preempted=True) for _ in range(8)]
    sim.clock.at += PAST_MINIMUM
    waiting = sim.request_lease(create_tenant("Kestrel"), offering("whole-gpu"))
    sim.run()
    (notice,) = notices()
    victim = next(lease for lease in leases if lease.pk == notice.lease_id)
    sim.run_with_sweeps(330)
    again = reload_lease(victim)
    assert (reload_lease(waiting).state, again.state) == ("active", "queued")
    active_at = next(step.at for step in transitions_of(victim) if step.after == "active")
    assert again.active_seconds == (notice.reclaim_at - active_at).total_seconds()
    assert [step.reason for step in transitions_of(victim) if step.after == "stopping"] == ["preempted"]
    sim.release_lease(reload_lease(waiting))
    sim.run_with_sweeps(30)
    again = reload_lease(victim)
    assert again.state == "active"
    assert again.ends_at is not None
    assert again.active_at is not None
    assert (again.ends_at - again.active_at).total_seconds() == 8 * 3600 - again.active_seconds


def create_reserved_offering() -> Offering:
    found = offering("whole-gpu")
    found.pk, found.price_class, found._state.adding = "off_reserved", "reserved", True
    found.save()
    return found


def test_a_reserved_request_reclaims_spot_and_is_never_reclaimed(sim: Simulation, swift: TenantContext) -> None:
    kestrel = create_tenant("Kestrel")
    leases = [sim.create_lease(swift, spot(), max_duration_s=8 * 3600) for _ in range(8)]
    sim.clock.at += PAST_MINIMUM
    reserved = sim.request_lease(kestrel, create_reserved_offering(), max_duration_s=8 * 3600)
    sim.run()
    (notice,) = notices()
    sim.run_with_sweeps(330)
    reserved = reload_lease(reserved)
    assert reserved.state == "active"
    victim = reload_lease(next(lease for lease in leases if lease.pk == notice.lease_id))
    assert (victim.state, victim.end_reason, victim.ended_at) == ("released", "preempted", notice.reclaim_at)
    assert slots_of(reserved)
    for lease in leases:
        if lease.pk != victim.pk:
            sim.release_lease(reload_lease(lease))
    sim.run_with_sweeps(30)
    sim.create_lease(kestrel, offering("whole-gpu"), quantity=7)
    sim.clock.at += PAST_MINIMUM
    waiting = sim.request_lease(swift, offering("whole-gpu"))
    sim.run_with_sweeps(30)
    assert (reload_lease(waiting).state, len(notices())) == ("queued", 1)


def test_a_preempted_batch_runs_again_and_keeps_its_retries(
    sim: Simulation, swift: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch: dict[str, Any] = {"workload": "batch", "image": "train", "command": "train", "retries": 1}
    wishes: dict[str, Any] = {"requeue_when_preempted": True, "max_duration_s": 8 * 3600}
    leases = [sim.create_lease(swift, spot(), **batch, **wishes) for _ in range(8)]
    sim.clock.at += PAST_MINIMUM
    waiting = sim.request_lease(create_tenant("Kestrel"), offering("whole-gpu"))
    sim.run()
    (notice,) = notices()
    victim = next(lease for lease in leases if lease.pk == notice.lease_id)
    sim.run_with_sweeps(330)
    assert (reload_lease(waiting).state, reload_lease(victim).state) == ("active", "queued")
    sim.release_lease(reload_lease(waiting))
    sim.run_with_sweeps(30)
    again = reload_lease(victim)
    assert (again.state, again.attempt) == ("active", 1)
    failed = Observation(ObservedState.ENDED, "its command failed: exit code 2", last_seen=sim.now, exit_code=2)
    monkeypatch.setattr(SimulatedProvisioner, "observe", lambda *_, **__: failed)
    lease_reconciler.reconcile_lease(again.pk, again.tenant_id, now=sim.now)
    monkeypatch.undo()
    sim.run_with_sweeps(60)
    with tenant_scope(swift.tenant.pk):
        runs = [
            (each.number, each.counted, each.exit_code, each.ended_at) for each in attempt_records.attempts_of(again)
        ]
        assert attempt_records.count_losses(again) == 0
    assert [run[:3] for run in runs] == [(1, False, None), (1, True, 2)]
    assert runs[0][3] == notice.reclaim_at
    again = reload_lease(victim)
    assert (again.state, again.attempt) == ("active", 2)


def test_a_stop_during_preemption_keeps_the_lease_stopped(sim: Simulation, swift: TenantContext) -> None:
    volume = sim.create_volume(swift).pk
    wanted = {"max_duration_s": 8 * 3600, "requeue_when_preempted": True}
    kept = sim.create_lease(swift, spot(), volume=volume, **wanted)
    for _ in range(7):
        sim.create_lease(swift, offering("whole-gpu"), max_duration_s=8 * 3600)
    sim.clock.at += PAST_MINIMUM
    sim.request_lease(create_tenant("Kestrel"), offering("whole-gpu"))
    sim.run()
    (notice,) = notices()
    assert notice.lease_id == kept.pk
    sim.clock.at = notice.reclaim_at
    lease_reconciler.reconcile_lease(kept.pk, kept.tenant_id, now=sim.now)
    assert reload_lease(kept).state == "stopping"
    sim.stop_lease(kept, swift)
    sim.run_with_sweeps(120)
    assert reload_lease(kept).state == "stopped"


def test_a_preempted_lease_whose_quota_is_used_ends_as_preempted(sim: Simulation, swift: TenantContext) -> None:
    leases = [sim.create_lease(swift, spot(), max_duration_s=8 * 3600, requeue_when_preempted=True) for _ in range(8)]
    sim.clock.at += PAST_MINIMUM
    sim.request_lease(create_tenant("Kestrel"), offering("whole-gpu"))
    sim.run()
    (notice,) = notices()
    with tenant_scope(swift.tenant.pk):
        Quota.objects.filter(kind=QuotaKind.UNITS).update(soft_limit=1000)
    sim.run_with_sweeps(330)
    victim = reload_lease(next(lease for lease in leases if lease.pk == notice.lease_id))
    assert (victim.state, victim.end_reason) == ("released", "preempted")
    assert transitions_of(victim)[-2].cause.startswith("preempted, and not queued again: ")


def test_a_notice_runs_the_checkpoint_command(sim: Simulation, swift: TenantContext) -> None:
    for _ in range(8):
        sim.create_lease(swift, spot(), max_duration_s=8 * 3600, checkpoint_command="kill -USR1 1")
    sim.clock.at += PAST_MINIMUM
    sim.request_lease(create_tenant("Kestrel"), offering("whole-gpu"))
    sim.run()
    (notice,) = notices()
    pods = SimulatedPod.objects.exclude(last_command="")
    assert [pod.last_command for pod in pods] == ["kill -USR1 1"]
    assert (notice.checkpoint_at, notice.checkpoint_text) == (sim.now, "the checkpoint command was started")


def test_a_late_worker_charges_nothing_after_the_end_of_the_notice(sim: Simulation, four_of_eight: list[Lease]) -> None:
    sim.request_lease(create_tenant("Kestrel"), offering("whole-gpu"), quantity=5)
    sim.run()
    (notice,) = notices()
    sim.clock.at = notice.reclaim_at + timedelta(seconds=47)
    victim = next(lease for lease in four_of_eight if lease.pk == notice.lease_id)
    with tenant_scope(victim.tenant_id):
        reload_lease(victim).add_metering_tick(at=sim.now)
    sim.run()
    assert reload_lease(victim).ended_at == notice.reclaim_at


def test_wishes_of_spot_leases_are_refused_for_other_classes(sim: Simulation, swift: TenantContext) -> None:
    for wish in ({"requeue_when_preempted": True}, {"checkpoint_command": "true"}):
        with pytest.raises(InvalidValue, match="not a spot offering"):
            sim.request_lease(swift, offering("whole-gpu"), **wish)


def test_the_terms_of_its_offering_are_promised_to_a_lease(sim: Simulation, swift: TenantContext) -> None:
    own = spot()
    Offering.objects.filter(pk=own.pk).update(spot_notice_s=60, spot_min_runtime_s=0)
    lease = sim.create_lease(swift, own, quantity=8)
    Offering.objects.filter(pk=own.pk).update(spot_notice_s=0, spot_min_runtime_s=0)
    sim.request_lease(create_tenant("Kestrel"), offering("whole-gpu"))
    sim.run()
    (notice,) = notices()
    assert notice.reclaim_at - notice.noticed_at >= timedelta(seconds=60)
    assert reload_lease(lease).spot_min_runtime_s == 0


def test_a_lease_that_is_stopped_during_its_notice_frees_its_slice_at_once(
    sim: Simulation, swift: TenantContext
) -> None:
    volume = sim.create_volume(swift).pk
    lease = sim.create_lease(swift, spot(), max_duration_s=8 * 3600, volume=volume)
    sim.create_lease(create_tenant("Merlin"), offering("whole-gpu"), quantity=7, max_duration_s=8 * 3600)
    sim.clock.at += PAST_MINIMUM
    waiting = sim.request_lease(create_tenant("Kestrel"), offering("whole-gpu"))
    sim.run_with_sweeps(30)
    sim.stop_lease(lease, swift)
    assert [notice.state for notice in notices()] == ["ended_early"]  # at once: started again, it may get another
    sim.run_with_sweeps(15)
    assert (reload_lease(waiting).state, reload_lease(lease).state) == ("active", "stopped")
    assert [notice.state for notice in notices()] == ["ended_early"]


def test_linked_gpus_are_freed_for_a_request_that_needs_them_linked(sim: Simulation, swift: TenantContext) -> None:
    for number, gpu in enumerate(Gpu.objects.order_by("index")):
        Gpu.objects.filter(pk=gpu.pk).update(numa=str(number // 4))
    Node.objects.update(version=2)
    leases = [sim.create_lease(swift, spot(), max_duration_s=8 * 3600) for _ in range(8)]
    sim.clock.at += PAST_MINIMUM
    gang = sim.request_lease(create_tenant("Kestrel"), offering("whole-gpu"), quantity=2, topology="numa")
    sim.run()
    assert len(notices()) == 2
    sim.run_with_sweeps(330)
    assert reload_lease(gang).state == "active"
    sockets = set(Gpu.objects.filter(pk__in={gpu for gpu, _ in slots_of(gang)}).values_list("numa", flat=True))
    assert len(sockets) == 1
    assert [reload_lease(lease).state for lease in leases].count("active") == 6


@pytest.mark.deep
def test_slices_that_stay_occupied_withdraw_the_reclaim(
    sim: Simulation, four_of_eight: list[Lease], monkeypatch: pytest.MonkeyPatch
) -> None:
    gang = sim.request_lease(create_tenant("Kestrel"), offering("whole-gpu"), quantity=5)
    sim.run()
    monkeypatch.setattr(
        SimulatedProvisioner, "remove", lambda *_, now: Observation(ObservedState.PENDING, "shutting down")
    )
    sim.run_with_sweeps(620)
    withdrawn = SpotReclaim.objects.earliest("noticed_at")
    assert (withdrawn.state, withdrawn.why) == ("withdrawn", "the slices did not become free in time")
    monkeypatch.undo()
    sim.run_with_sweeps(400)
    assert reload_lease(gang).state == "active"


def test_a_slice_taken_in_spite_of_its_promise_withdraws_the_reclaim(
    sim: Simulation, four_of_eight: list[Lease]
) -> None:
    sim.request_lease(create_tenant("Kestrel"), offering("whole-gpu"), quantity=5)
    sim.run()
    (notice,) = notices()
    taken = held_allocations(next(lease for lease in four_of_eight if lease.pk != notice.lease_id))[0]
    slot = PromisedSlot.objects.exclude(gpu_id=taken.gpu_id).first()
    assert slot is not None
    PromisedSlot.objects.filter(pk=slot.pk).update(gpu_id=taken.gpu_id)
    spot_reclaims.reconcile_spot_reclaim(notice.reclaim_id, now=sim.now)
    assert SpotReclaim.objects.get(pk=notice.reclaim_id).why == "the slices were taken by another lease"
    spot_reclaims.reconcile_spot_reclaim(notice.reclaim_id, now=sim.now)  # it is over
    with system_scope():
        over = SpotReclaim.objects.get(pk=notice.reclaim_id)
    spot_reclaims._end_reclaim(over, SpotReclaimState.DONE, why="late", now=sim.now)
    assert SpotReclaim.objects.get(pk=notice.reclaim_id).state == "withdrawn"


@pytest.mark.parametrize("what", ["victim", "noticed", "waiting", "slot", "gpu", "planner"])
def test_a_plan_that_no_longer_holds_gives_no_notice(
    sim: Simulation, swift: TenantContext, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    leases = [sim.create_lease(swift, spot(), max_duration_s=8 * 3600) for _ in range(8)]
    sim.clock.at += PAST_MINIMUM
    waiting = sim.request_lease(create_tenant("Kestrel"), offering("whole-gpu"))
    plan = spot_reclaims._plan

    def changes(*given: Any, **named: Any) -> Any:
        found = plan(*given, **named)
        assert found is not None
        with tenant_scope(swift.tenant.pk):
            victim = Lease.objects.filter(pk=found.leases[0])
            if what == "victim":
                victim.update(conditions={}, spot_min_runtime_s=86_400)
            elif what == "noticed":
                victim.update(reclaim_at=sim.now)
            elif what == "slot":
                found.slices.leases = []
        if what == "gpu":
            Gpu.objects.filter(pk__in=found.found.gpus).update(health="unhealthy")
        if what == "waiting":
            with tenant_scope(waiting.tenant_id):
                Lease.objects.filter(pk=waiting.pk).update(state="provisioning")
        return found

    monkeypatch.setattr(spot_reclaims, "_plan", changes)
    if what == "planner":
        monkeypatch.setattr(spot_reclaims, "_is_planner", lambda _: False)
    assert not spot_reclaims.give_notice_for(reload_lease(waiting), now=sim.now)
    assert not notices()
    assert not PromisedSlot.objects.exists()
    assert [lease for lease in leases if reload_lease(lease).reclaim_at not in (None, sim.now)] == []


def test_slices_released_between_two_reads_give_no_notice(
    sim: Simulation, four_of_eight: list[Lease], monkeypatch: pytest.MonkeyPatch
) -> None:
    gang = sim.request_lease(create_tenant("Kestrel"), offering("whole-gpu"), quantity=6)
    read = spot_reclaims.load_reclaimable_slices

    def released_since(*given: Any, **named: Any) -> Any:
        found = read(*given, **named)
        with tenant_scope(four_of_eight[0].tenant_id):
            four_of_eight[0].allocations.update(released_at=sim.now)
        return found

    monkeypatch.setattr(spot_reclaims, "load_reclaimable_slices", released_since)
    assert not spot_reclaims.give_notice_for(reload_lease(gang), now=sim.now)
    assert spot_reclaims.preview_notice_s(reload_lease(gang), now=sim.now) is None
    assert not notices()


def test_a_checkpoint_command_that_fails_is_recorded(
    sim: Simulation, swift: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, now: Any) -> None:
        raise CommandFailed("sh: not found")

    monkeypatch.setattr(SimulatedProvisioner, "run_command", fails)
    sim.create_lease(swift, spot(), quantity=8, max_duration_s=8 * 3600, checkpoint_command="save")
    sim.clock.at += PAST_MINIMUM
    sim.request_lease(create_tenant("Kestrel"), offering("whole-gpu"))
    sim.run()
    assert [notice.checkpoint_text for notice in notices()] == ["the checkpoint command failed: sh: not found"]


def test_words_of_a_failed_checkpoint_command_are_masked(
    sim: Simulation, swift: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, now: Any) -> None:
        raise CommandFailed("curl: rejected w-\x1b[31m123456 w-123456")

    monkeypatch.setattr(SimulatedProvisioner, "run_command", fails)
    wanted: dict[str, Any] = {"checkpoint_command": "save", "env": {"WANDB_API_KEY": "w-123456"}}
    sim.create_lease(swift, spot(), quantity=8, max_duration_s=8 * 3600, **wanted)
    sim.clock.at += PAST_MINIMUM
    sim.request_lease(create_tenant("Kestrel"), offering("whole-gpu"))
    sim.run()
    assert [each.checkpoint_text for each in notices()] == ["the checkpoint command failed: curl: rejected *** ***"]


def test_a_silent_cluster_gets_the_checkpoint_command_until_the_notice_ends(
    sim: Simulation, swift: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[datetime] = []

    def is_silent(*_: Any, now: datetime) -> None:
        calls.append(now)
        raise ClusterUnreachable("timed out")

    monkeypatch.setattr(SimulatedProvisioner, "run_command", is_silent)
    sim.create_lease(swift, spot(), quantity=8, max_duration_s=8 * 3600, checkpoint_command="save")
    sim.clock.at += PAST_MINIMUM
    sim.request_lease(create_tenant("Kestrel"), offering("whole-gpu"))
    sim.run(400)
    (notice,) = notices()
    assert len(calls) == 31
    assert calls[-1] < notice.reclaim_at
    assert notice.checkpoint_text == "the cluster does not respond: timed out"


def test_a_checkpoint_is_not_run_twice(sim: Simulation, swift: TenantContext) -> None:
    sim.create_lease(swift, spot(), quantity=8, max_duration_s=8 * 3600, checkpoint_command="save")
    sim.clock.at += PAST_MINIMUM
    sim.request_lease(create_tenant("Kestrel"), offering("whole-gpu"))
    sim.run()
    (notice,) = notices()
    SimulatedPod.objects.update(last_command="")
    checkpoints.run_checkpoint(notice.pk, notice.tenant_id, now=sim.now)
    assert not SimulatedPod.objects.exclude(last_command="").exists()


def test_the_people_concerned_get_emails(
    sim: Simulation, swift: TenantContext, django_capture_on_commit_callbacks: Any
) -> None:
    swift.create_member(Role.OWNER)
    sim.create_lease(swift, spot(), quantity=8, max_duration_s=8 * 3600, name="fold", requeue_when_preempted=True)
    sim.clock.at += PAST_MINIMUM
    sent: list[tuple[str, str, str]] = []
    with mail.captured_mail(lambda *letter: sent.append(letter)), django_capture_on_commit_callbacks(execute=True):
        waiting = sim.request_lease(create_tenant("Kestrel"), offering("whole-gpu"))
        sim.run()
    [(_, subject, text)] = sent
    assert subject == f"fold ends at {notices()[0].reclaim_at:%H:%M} UTC"
    assert "Save what you need before then. All data on the lease is lost. It is then queued again" in text
    sent.clear()
    with mail.captured_mail(lambda *letter: sent.append(letter)), django_capture_on_commit_callbacks(execute=True):
        sim.release_lease(reload_lease(waiting))
        sim.run()
    assert [subject for _, subject, _ in sent] == ["fold keeps running"]


def test_without_a_notice_period_nobody_gets_an_email(
    sim: Simulation, swift: TenantContext, django_capture_on_commit_callbacks: Any
) -> None:
    Offering.objects.filter(pk=spot().pk).update(spot_notice_s=0, spot_min_runtime_s=0)
    swift.create_member(Role.OWNER)
    lease = sim.create_lease(swift, spot(), quantity=8, max_duration_s=8 * 3600)
    sim.clock.at = sim.now.replace(microsecond=0) + timedelta(seconds=1)
    sent: list[object] = []
    with mail.captured_mail(lambda *letter: sent.append(letter)), django_capture_on_commit_callbacks(execute=True):
        waiting = sim.request_lease(create_tenant("Kestrel"), offering("whole-gpu"))
        sim.run_with_sweeps(20)
    assert sent == []
    assert (reload_lease(lease).end_reason, reload_lease(waiting).state) == ("preempted", "active")


def test_shares_of_a_gpu_are_reclaimed_for_a_share(sim: Simulation, swift: TenantContext) -> None:
    share = soft_offering("half")
    spot_share = Offering.objects.get(pk=share.pk)
    spot_share.pk, spot_share.price_class = "off_spotshare", "spot"
    spot_share.save(force_insert=True)
    sim.create_lease(create_tenant("Merlin"), offering("whole-gpu"), quantity=7, max_duration_s=8 * 3600)
    small = [sim.create_lease(swift, spot_share, max_duration_s=8 * 3600) for _ in range(2)]
    sim.clock.at += PAST_MINIMUM
    own = sim.request_lease(create_tenant("Kestrel"), share)
    sim.run_with_sweeps(330)
    assert reload_lease(own).state == "active"
    assert [reload_lease(lease).end_reason for lease in small] == ["preempted", "preempted"]


def test_a_preempted_lease_of_a_suspended_tenant_is_not_queued_again(sim: Simulation, swift: TenantContext) -> None:
    lease = sim.create_lease(swift, spot(), quantity=8, max_duration_s=8 * 3600, requeue_when_preempted=True)
    sim.clock.at += PAST_MINIMUM
    sim.request_lease(create_tenant("Kestrel"), offering("whole-gpu"))
    sim.run()
    with tenant_scope(swift.tenant.pk):
        tenants.suspend(swift.tenant, actor=SYSTEM, now=sim.now, why="unpaid")
    sim.run_with_sweeps(330)
    assert (reload_lease(lease).state, reload_lease(lease).end_reason) == ("released", "preempted")
    assert "was suspended on" in transitions_of(lease)[-2].cause


def test_a_preempted_lease_on_a_node_lost_while_it_stops_is_queued_again(sim: Simulation, swift: TenantContext) -> None:
    lease = sim.create_lease(swift, spot(), quantity=8, max_duration_s=8 * 3600, requeue_when_preempted=True)
    sim.clock.at += PAST_MINIMUM
    sim.request_lease(create_tenant("Kestrel"), offering("whole-gpu"))
    sim.run()
    (notice,) = notices()
    sim.run((notice.reclaim_at - sim.now).total_seconds() + 0.1)
    assert reload_lease(lease).state == "stopping"
    set_node_state(node_of(lease), NodeState.LOST, sim)
    sim.run_with_sweeps(60)
    assert (reload_lease(lease).state, held_allocations(lease)) == ("queued", [])


@pytest.mark.deep
def test_two_planners_at_once_reclaim_each_lease_for_one_request(own_database: OwnDatabase) -> None:
    requests = 4
    with clock.frozen_at(NOW) as standing, outbox.captured(lambda *_: None):
        sim = Simulation(standing)
        with outbox.captured(sim.record_message):
            create_gpus(8)
            swift, kestrel = create_tenant("Swift"), create_tenant("Kestrel")
            leases = [sim.create_lease(swift, spot(), max_duration_s=8 * 3600) for _ in range(8)]
            sim.clock.at += PAST_MINIMUM
            waiting = [sim.request_lease(kestrel, offering("whole-gpu")) for _ in range(requests)]
        barrier = threading.Barrier(requests)

        def plan(number: int) -> int:
            lease, given = reload_lease(waiting[number]), 0
            barrier.wait(60)
            while not given:  # another plans at the moment
                given = spot_reclaims.give_notice_for(lease, now=sim.now)
            connections.close_all()
            return given

        with ThreadPoolExecutor(requests) as pool:
            assert sum(pool.map(plan, range(requests))) == requests
        assert len({notice.lease_id for notice in notices()}) == len(notices()) == requests
        assert PromisedSlot.objects.values("gpu").distinct().count() == requests
        assert [bool(reload_lease(lease).reclaim_at) for lease in leases].count(True) == requests


def test_equal_requests_that_no_reclaim_helps_are_planned_once_in_a_run(
    sim: Simulation, four_of_eight: list[Lease], monkeypatch: pytest.MonkeyPatch
) -> None:
    kestrel = create_tenant("Kestrel")
    sim.create_lease(kestrel, offering("whole-gpu"), quantity=2, max_duration_s=8 * 3600)
    for quantity in (7, 8, 7, 8):
        sim.request_lease(kestrel, offering("whole-gpu"), quantity=quantity)
    sim.run()
    planned, give = list[int](), spot_reclaims.give_notice_for
    monkeypatch.setattr(
        spot_reclaims, "give_notice_for", lambda lease, **named: planned.append(lease.quantity) or give(lease, **named)
    )
    queue_scheduling.run_queue((MODEL, REGION), now=sim.now)
    assert planned == [7, 8]
    assert not notices()
