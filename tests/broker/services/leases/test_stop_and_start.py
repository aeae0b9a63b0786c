"""Stop and restart of leases with volumes."""

from datetime import timedelta
from itertools import pairwise

import pytest

from broker.domain.lifecycle.states import EndReason, LeaseState
from broker.models import Lease, OfferingState, SimulatedPod, SimulatedVolume, StaleLease
from broker.provisioners.base import Observation, ObservedState
from broker.provisioners.simulated import SimulatedProvisioner
from broker.services.leases import abandoned_placements
from broker.services.leases.lease_requests import OfferingRetired
from broker.services.leases.lifecycle import extension, stop_and_start, termination
from broker.services.leases.lifecycle.stop_and_start import (
    LeaseNotActive,
    LeaseNotStopped,
    LeaseTimeUsedUp,
    LeaseWithoutVolume,
)
from broker.services.leases.lifecycle.termination import LeaseAlreadyOver
from broker.services.queue import queue_positions, queue_scheduling
from broker.services.reconciler import lease_reconciler
from broker.services.reports import invariant_checks
from broker.services.volumes import volume_lifecycle
from broker.services.volumes.volume_errors import VolumeInUse
from tenants.models import AuditEvent, Project, Quota, QuotaKind
from tenants.services import quotas
from tenants.services.errors import QuotaExceeded
from tenants.services.rls import staff_scope, tenant_scope
from tests.simulation import (
    OPERATOR,
    Simulation,
    TenantContext,
    create_gpus,
    create_tenant,
    held_allocations,
    offering,
    reload_lease,
    state_path,
    transitions_of,
)

S = LeaseState
UNITS, HOURS, BURN = QuotaKind.UNITS, QuotaKind.GPU_SECONDS, QuotaKind.BURN
LIFE = "requested queued provisioning active"


@pytest.fixture
def kestrel(sim: Simulation) -> TenantContext:
    create_gpus(1)
    return create_tenant("Kestrel")


def create_lease_with_volume(sim: Simulation, owner: TenantContext, what: str = "1g.10gb", **wanted: object) -> Lease:
    """Return an active lease with a volume."""
    volume = wanted.pop("volume", None) or sim.create_volume(owner, f"home-{len(sim.messages)}-{sim.now:%H%M%S}").pk
    return reload_lease(sim.create_lease(owner, offering(what), volume=volume, **wanted))


def stop_lease(sim: Simulation, owner: TenantContext, lease: Lease) -> Lease:
    sim.stop_lease(lease, owner)
    sim.run(5)
    assert reload_lease(lease).state == S.STOPPED
    return reload_lease(lease)


def active_seconds(lease: Lease) -> int:
    steps = [*transitions_of(lease)]
    spans = [(a, b) for a, b in pairwise(steps) if a.after == S.ACTIVE]
    return int(sum((b.at - a.at).total_seconds() for a, b in spans))


def assert_invariants_hold(sim: Simulation) -> None:
    with staff_scope():
        assert [proof.name for proof in invariant_checks.check_invariants(now=sim.now) if not proof.holds] == []


def test_a_stopped_lease_holds_no_gpu_and_restarts_with_its_volume(sim: Simulation, kestrel: TenantContext) -> None:
    lease = create_lease_with_volume(sim, kestrel)
    first = SimulatedVolume.objects.get()
    sim.run(100)
    sim.stop_lease(lease, kestrel)
    assert (reload_lease(lease).state, reload_lease(lease).ended_at) == (S.STOPPING, None)
    sim.run(5)
    assert (reload_lease(lease).state, held_allocations(lease), kestrel.quota_used()) == (S.STOPPED, [], 0)
    assert not SimulatedPod.objects.exists()
    assert_invariants_hold(sim)
    sim.run(500)
    sim.start_lease(lease, kestrel)
    sim.run(12)
    assert (reload_lease(lease).state, kestrel.quota_used()) == (S.ACTIVE, 1000)
    assert SimulatedVolume.objects.get().made_at == first.made_at
    assert SimulatedVolume.objects.get().last_used_by.endswith(f"g{reload_lease(lease).generation}")
    assert reload_lease(lease).generation > lease.generation
    sim.release_lease(lease)
    sim.run(5)
    again = "stopping stopped queued provisioning active releasing released"
    assert state_path(lease) == f"{LIFE} {again}"
    assert kestrel.quota_used() == 0
    assert SimulatedVolume.objects.exists()
    with tenant_scope(kestrel.tenant.pk):
        rows = AuditEvent.objects.filter(action__in=["lease.stop", "lease.start"]).order_by("id")
        assert [(event.action, event.actor_label) for event in rows] == [
            ("lease.stop", kestrel.actor.label),
            ("lease.start", kestrel.actor.label),
        ]
    assert_invariants_hold(sim)


def test_the_duration_counts_only_active_time_across_stops(sim: Simulation, kestrel: TenantContext) -> None:
    lease = create_lease_with_volume(sim, kestrel, max_duration_s=1000)
    sim.run(200)
    spent = stop_lease(sim, kestrel, lease).active_seconds
    assert 195 <= spent <= 201
    sim.run(5000)
    sim.start_lease(lease, kestrel)
    sim.run(12)
    again = reload_lease(lease)
    assert again.active_at
    assert again.ends_at == again.active_at + timedelta(seconds=1000 - spent)
    sim.run(1000)
    over = reload_lease(lease)
    assert (over.state, over.end_reason, over.ended_at) == (S.RELEASED, "expired", again.ends_at)
    assert active_seconds(lease) == 1000


def test_a_stopped_lease_uses_only_its_active_time_of_the_gpu_hour_quota(
    sim: Simulation, kestrel: TenantContext
) -> None:
    kestrel.set_quota(HOURS, 10**9)
    lease = create_lease_with_volume(sim, kestrel, max_duration_s=3600)
    assert kestrel.quota_used(HOURS) == 3600 * 1000
    sim.run(100)
    spent = stop_lease(sim, kestrel, lease).active_seconds
    assert kestrel.quota_used(HOURS) == spent * 1000
    assert_invariants_hold(sim)
    sim.start_lease(lease, kestrel)
    assert kestrel.quota_used(HOURS) == 3600 * 1000
    sim.run(12)
    again = stop_lease(sim, kestrel, lease).active_seconds
    assert (again > spent, kestrel.quota_used(HOURS)) == (True, again * 1000)
    sim.release_lease(lease)  # stopped as it is: over at once
    assert (reload_lease(lease).state, kestrel.quota_used(HOURS)) == (S.RELEASED, again * 1000)
    assert active_seconds(lease) == again
    assert_invariants_hold(sim)


def test_a_restart_in_a_new_month_counts_the_remaining_time_in_that_month(
    sim: Simulation, kestrel: TenantContext
) -> None:
    kestrel.set_quota(HOURS, 10**9)
    lease = create_lease_with_volume(sim, kestrel, max_duration_s=3600)
    sim.run(100)
    spent = stop_lease(sim, kestrel, lease).active_seconds
    sim.clock.at += timedelta(days=20)
    sim.start_lease(lease, kestrel)
    assert kestrel.quota_used(HOURS) == (3600 - spent) * 1000
    assert sorted(reload_lease(lease).quota_uses["gpu_seconds"]["windows"].values()) == [
        spent * 1000,
        (3600 - spent) * 1000,
    ]
    sim.run(12)
    sim.release_lease(lease)
    sim.run(5)
    assert kestrel.quota_used(HOURS) == (active_seconds(lease) - spent) * 1000


@pytest.mark.parametrize("at_the_end", [S.STOPPED, S.ACTIVE, S.RELEASED])
def test_a_later_quota_counts_every_usage_period(
    sim: Simulation, kestrel: TenantContext, at_the_end: LeaseState
) -> None:
    team = kestrel.create_project("team")
    lease = create_lease_with_volume(
        sim, kestrel, max_duration_s=3600, project=team, volume=sim.create_volume(kestrel, project=team).pk
    )
    sim.run(100)
    stop_lease(sim, kestrel, lease)
    if at_the_end is not S.STOPPED:
        sim.start_lease(lease, kestrel)
        sim.run(60)
    if at_the_end is S.RELEASED:
        sim.release_lease(lease)
        sim.run(5)
    counted = {S.ACTIVE: 3600}.get(at_the_end, active_seconds(lease))
    assert limit(kestrel, HOURS, team, sim).used == counted * 1000
    assert limit(kestrel, UNITS, team, sim).used == (1000 if at_the_end is S.ACTIVE else 0)
    assert_invariants_hold(sim)


def limit(owner: TenantContext, kind: QuotaKind, project: Project, sim: Simulation) -> Quota:
    with tenant_scope(owner.tenant.pk):
        return quotas.set_limit(project=project, kind=kind, limit=10**12, actor=OPERATOR, now=sim.now)


def test_a_stopped_lease_restarts_only_if_every_gate_allows(sim: Simulation, kestrel: TenantContext) -> None:
    lease = stop_lease(sim, kestrel, create_lease_with_volume(sim, kestrel))
    kestrel.set_quota(UNITS, 500)
    with pytest.raises(QuotaExceeded):
        sim.start_lease(lease, kestrel)
    assert (reload_lease(lease).state, kestrel.quota_used()) == (S.STOPPED, 0)


def test_a_restarted_lease_queues_behind_waiting_ones(sim: Simulation, kestrel: TenantContext) -> None:
    lease = stop_lease(sim, kestrel, create_lease_with_volume(sim, kestrel, "whole-gpu"))
    sim.create_lease(kestrel, offering("whole-gpu"), max_duration_s=20_000)
    waits = [sim.request_lease(kestrel, offering("whole-gpu")) for _ in range(2)]
    sim.run(60)
    sim.start_lease(lease, kestrel)
    queue = queue_scheduling.load_queue(("H100-80GB", "eu-north"))
    assert [each.lease_id for each in queue] == [waits[0].pk, waits[1].pk, lease.pk]
    with tenant_scope(kestrel.tenant.pk):
        assert queue_positions.load_queue_positions([reload_lease(lease)])[lease.pk].place == 3
        assert queue_scheduling.is_first_in_queue(reload_lease(waits[0]))
        assert not queue_scheduling.is_first_in_queue(reload_lease(lease))


def test_only_an_active_lease_with_a_volume_can_be_stopped(sim: Simulation, kestrel: TenantContext) -> None:
    queued = sim.request_lease(kestrel, offering(), volume=sim.create_volume(kestrel).pk)
    with pytest.raises(LeaseNotActive, match="is queued"):
        sim.stop_lease(queued, kestrel)
    bare = sim.create_lease(kestrel, offering())
    with pytest.raises(LeaseWithoutVolume, match="has no volume"):
        sim.stop_lease(bare, kestrel)
    assert reload_lease(bare).state == S.ACTIVE


def test_only_a_stopped_lease_with_time_left_can_be_started(sim: Simulation, kestrel: TenantContext) -> None:
    lease = create_lease_with_volume(sim, kestrel, max_duration_s=240)
    with pytest.raises(LeaseNotStopped, match="is active"):
        sim.start_lease(lease, kestrel)
    sim.run(200)
    lease = stop_lease(sim, kestrel, lease)
    with pytest.raises(LeaseTimeUsedUp, match="of the 240 s"):
        sim.start_lease(lease, kestrel)
    with tenant_scope(kestrel.tenant.pk):
        extension.extend_lease(lease, more_s=3600, actor=kestrel.actor, now=sim.now)
    assert kestrel.quota_used() == 0  # it holds nothing yet
    what = lease.offering
    what.state = OfferingState.RETIRED
    what.save()
    with pytest.raises(OfferingRetired):
        sim.start_lease(lease, kestrel)
    what.state = OfferingState.PUBLISHED
    what.save()
    sim.start_lease(lease, kestrel)
    sim.run(12)
    assert reload_lease(lease).state == S.ACTIVE


def test_a_fixed_end_releases_a_stopped_lease_unless_it_was_extended(sim: Simulation, kestrel: TenantContext) -> None:
    end = sim.now + timedelta(seconds=600)
    lease = stop_lease(sim, kestrel, create_lease_with_volume(sim, kestrel, end_date=end))
    later = sim.create_volume(kestrel, "second")
    waits = stop_lease(sim, kestrel, create_lease_with_volume(sim, kestrel, end_date=end, volume=later.pk))
    with tenant_scope(kestrel.tenant.pk):
        extension.extend_lease(waits, more_s=3600, actor=kestrel.actor, now=sim.now)
    sim.clock.at = end
    with pytest.raises(LeaseAlreadyOver):
        sim.start_lease(lease, kestrel)
    sim.sweep()
    assert (reload_lease(lease).state, reload_lease(lease).end_reason) == (S.RELEASED, "expired")
    assert (reload_lease(waits).state, reload_lease(waits).due_at) == (S.STOPPED, end + timedelta(seconds=3600))


def test_an_expired_lease_cannot_be_stopped(sim: Simulation, kestrel: TenantContext) -> None:
    lease = create_lease_with_volume(sim, kestrel, max_duration_s=120)
    sim.messages.clear()
    sim.clock.at += timedelta(seconds=130)
    with pytest.raises(LeaseAlreadyOver, match="reached its end"):
        sim.stop_lease(lease, kestrel)


def test_stopping_is_idempotent_but_a_stale_active_lease_raises_an_error(
    sim: Simulation, kestrel: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = create_lease_with_volume(sim, kestrel)
    with tenant_scope(kestrel.tenant.pk):
        one, other = reload_lease(lease), reload_lease(lease)
        stop_and_start.stop_lease(one, actor=kestrel.actor, now=sim.now)
        stop_and_start.stop_lease(other, actor=kestrel.actor, now=sim.now)
        assert (one.state, other.state) == (S.STOPPING, S.STOPPING)
    assert state_path(lease) == f"{LIFE} stopping"
    sim.run(5)
    sim.start_lease(lease, kestrel)
    sim.run(12)

    def never(*_: object, **__: object) -> None:
        raise StaleLease(lease.pk)

    with tenant_scope(kestrel.tenant.pk), monkeypatch.context() as patch:
        patch.setattr(Lease, "transition", never)
        with pytest.raises(StaleLease):
            stop_and_start.stop_lease(reload_lease(lease), actor=kestrel.actor, now=sim.now)


def test_a_stopping_lease_can_be_released(sim: Simulation, kestrel: TenantContext) -> None:
    lease = create_lease_with_volume(sim, kestrel)
    sim.run(60)
    sim.stop_lease(lease, kestrel)
    sim.release_lease(lease)
    sim.run(5)
    over = reload_lease(lease)
    assert (state_path(lease), over.active_seconds > 0, over.active_at) == (
        f"{LIFE} stopping releasing released",
        True,
        None,
    )
    assert (kestrel.quota_used(), termination.used_unit_seconds(over)) == (0, over.active_seconds * 1000)
    assert_invariants_hold(sim)


def test_the_volume_of_a_stopped_lease_stays_reserved(sim: Simulation, kestrel: TenantContext) -> None:
    volume = sim.create_volume(kestrel)
    lease = stop_lease(sim, kestrel, create_lease_with_volume(sim, kestrel, volume=volume.pk))
    with pytest.raises(VolumeInUse, match="which is stopped"):
        sim.request_lease(kestrel, offering(), volume=volume.pk)
    with tenant_scope(kestrel.tenant.pk), pytest.raises(VolumeInUse):
        volume_lifecycle.delete_volume(volume, actor=kestrel.actor, now=sim.now)
    sim.release_lease(lease)
    sim.create_lease(kestrel, offering(), volume=lease.volume_id)


def test_a_lease_is_stopped_only_when_its_pod_is_proven_gone(
    sim: Simulation, kestrel: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = create_lease_with_volume(sim, kestrel)
    with monkeypatch.context() as patch:
        lost = Observation(ObservedState.LOST, "its node is unreachable", last_seen=sim.now)
        patch.setattr(SimulatedProvisioner, "remove", lambda *_, **__: lost)
        sim.stop_lease(lease, kestrel)
        sim.run_with_sweeps(120)
        assert (reload_lease(lease).state, len(held_allocations(lease))) == (S.STOPPING, 1)
    sim.run_with_sweeps(20)
    assert (reload_lease(lease).state, held_allocations(lease)) == (S.STOPPED, [])


def test_a_volume_stays_reserved_until_its_lease_is_proven_gone(
    sim: Simulation, kestrel: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """During a network partition its pod may still write."""
    lease = create_lease_with_volume(sim, kestrel)
    with monkeypatch.context() as patch:
        lost = Observation(ObservedState.LOST, "its node is unreachable", last_seen=sim.now)
        patch.setattr(SimulatedProvisioner, "remove", lambda *_, **__: lost)
        sim.release_lease(lease)
        sim.run_with_sweeps(120)
        assert reload_lease(lease).state == S.RELEASING
        with pytest.raises(VolumeInUse):
            sim.request_lease(kestrel, offering(), volume=lease.volume_id)
    sim.run_with_sweeps(20)
    assert reload_lease(lease).state == S.RELEASED


def test_starting_a_lease_twice_is_idempotent(sim: Simulation, kestrel: TenantContext) -> None:
    lease = stop_lease(sim, kestrel, create_lease_with_volume(sim, kestrel))
    sim.start_lease(lease, kestrel)
    begun = reload_lease(lease).seq
    sim.start_lease(lease, kestrel)
    assert reload_lease(lease).seq == begun
    sim.run(12)
    sim.start_lease(lease, kestrel)
    assert reload_lease(lease).state == S.ACTIVE


def test_a_released_lease_cannot_be_stopped_or_started(sim: Simulation, kestrel: TenantContext) -> None:
    lease = create_lease_with_volume(sim, kestrel)
    sim.release_lease(lease)
    sim.run(12)
    lease = reload_lease(lease)
    for again in (sim.stop_lease, sim.start_lease):
        with pytest.raises(LeaseAlreadyOver, match="is released"):
            again(lease, kestrel)


def test_restarts_do_not_count_as_abandoned_placements(sim: Simulation, kestrel: TenantContext) -> None:
    lease = create_lease_with_volume(sim, kestrel)
    for _ in range(12):
        lease = stop_lease(sim, kestrel, lease)
        sim.start_lease(lease, kestrel)
        sim.run(12)
    assert reload_lease(lease).generation > 12
    with tenant_scope(kestrel.tenant.pk):
        assert abandoned_placements.count_abandoned(reload_lease(lease)) == 0


def test_an_unreachable_lease_that_is_stopped_is_charged_until_it_was_last_seen(
    sim: Simulation, kestrel: TenantContext
) -> None:
    lease = create_lease_with_volume(sim, kestrel)
    seen = sim.now + timedelta(seconds=100)
    with tenant_scope(kestrel.tenant.pk):
        Lease.objects.filter(pk=lease.pk).update(seen_at=seen, conditions={"unreachable": "since then"})
    sim.messages.clear()
    sim.clock.at += timedelta(seconds=1000)
    sim.stop_lease(lease, kestrel)
    assert transitions_of(lease)[-1].at == seen.replace(microsecond=0)
    sim.run(5)
    assert reload_lease(lease).conditions == {}


def test_reconciling_a_stopped_lease_changes_nothing(sim: Simulation, kestrel: TenantContext) -> None:
    lease = stop_lease(sim, kestrel, create_lease_with_volume(sim, kestrel))
    lease_reconciler.reconcile_lease(lease.pk, lease.tenant_id, now=sim.now)
    assert (reload_lease(lease).seq, reload_lease(lease).due_at) == (lease.seq, None)


def test_an_operator_can_release_a_stopped_lease(sim: Simulation, kestrel: TenantContext) -> None:
    lease = stop_lease(sim, kestrel, create_lease_with_volume(sim, kestrel))
    with tenant_scope(kestrel.tenant.pk):
        termination.release_lease(lease, reason=EndReason.BY_OPERATOR, actor=OPERATOR, now=sim.now)
    assert reload_lease(lease).state == S.RELEASED
