"""Charges of leases whose program is not ready."""

from datetime import datetime, timedelta

import pytest

from broker.models import Cluster, Lease
from broker.provisioners.base import Observation, ObservedState, ProvisionSpec
from broker.provisioners.simulated import SimulatedProvisioner
from broker.services.inventory import cluster_provisioners
from broker.services.leases import idle_leases
from broker.services.leases.lifecycle import extension
from broker.services.reconciler import lease_reconciler
from ports import clock
from tenants.services.rls import tenant_scope
from tests.simulation import Simulation, create_gpus, create_tenant, offering, reload_lease, state_path, transitions_of

CRASHING = "fails/often"


class FixedProvisioner(SimulatedProvisioner):
    """A simulated provisioner that returns a fixed observation."""

    says: Observation | None = None

    def observe(self, order: ProvisionSpec, *, now: datetime) -> Observation:
        return self.says or super().observe(order, now=now)


@pytest.fixture
def provisioner(monkeypatch: pytest.MonkeyPatch) -> FixedProvisioner:
    create_gpus(1)
    made = FixedProvisioner()
    monkeypatch.setattr(cluster_provisioners, "provisioner_of", lambda order: made)
    return made


def crashing(sim: Simulation) -> Lease:
    """Return a lease whose program keeps failing after it was ready."""
    lease = reload_lease(sim.create_lease(create_tenant(), offering(), image=CRASHING, max_duration_s=3600))
    assert lease.state == "active"
    return lease


def reconcile(sim: Simulation, lease: Lease) -> None:
    """Let its agent notify a lease."""
    lease_reconciler.reconcile_lease(lease.pk, lease.tenant_id, now=sim.now)


@pytest.mark.deep
def test_a_crash_looping_program_is_charged_until_the_end_of_its_lease(sim: Simulation) -> None:
    create_gpus(1)
    lease = crashing(sim)
    sim.run_with_sweeps(3700)
    ended = reload_lease(lease)
    assert (ended.end_reason, ended.ended_at) == ("expired", lease.ends_at)


@pytest.mark.deep
def test_a_lease_with_a_program_not_ready_is_charged_until_its_release(sim: Simulation) -> None:
    create_gpus(1)
    lease = crashing(sim)
    sim.run_with_sweeps(3000)
    sim.release_lease(lease)
    assert reload_lease(lease).ended_at == sim.now.replace(microsecond=0)


@pytest.mark.deep
def test_a_program_that_is_not_ready_sets_degraded_and_is_metered(sim: Simulation) -> None:
    create_gpus(1)
    lease = crashing(sim)
    sim.run_with_sweeps(900)
    ill = reload_lease(lease)
    assert list(ill.conditions) == ["degraded"]
    assert "it is restarted" in ill.conditions["degraded"]
    with tenant_scope(lease.tenant_id):
        assert ill.add_metering_tick(at=sim.now - timedelta(minutes=2))


def test_a_recovered_program_clears_the_degraded_condition(sim: Simulation, provisioner: FixedProvisioner) -> None:
    lease = reload_lease(sim.create_lease(create_tenant(), offering()))
    provisioner.says = Observation(ObservedState.PENDING, "starting", last_seen=sim.now, running=True)
    sim.run_with_sweeps(300)
    assert list(reload_lease(lease).conditions) == ["degraded"]
    provisioner.says = None
    sim.run_with_sweeps(120)
    assert reload_lease(lease).conditions == {}


def test_a_lease_observed_not_ready_at_expiry_is_charged_in_full(
    sim: Simulation, provisioner: FixedProvisioner
) -> None:
    lease = reload_lease(sim.create_lease(create_tenant(), offering(), max_duration_s=3600))
    sim.run_with_sweeps(60)
    provisioner.says = Observation(ObservedState.PENDING, "no answer", answered=False)
    sim.run_with_sweeps(400)
    assert list(reload_lease(lease).conditions) == ["unreachable"]
    sim.messages.clear()
    sim.clock.at += timedelta(hours=1)
    provisioner.says = Observation(ObservedState.PENDING, "starting", last_seen=sim.now, running=True)
    sim.sweep()
    assert (reload_lease(lease).end_reason, reload_lease(lease).ended_at) == ("expired", lease.ends_at)


def test_a_lost_lease_whose_pod_stays_pending_ends_when_it_was_last_seen(
    sim: Simulation, provisioner: FixedProvisioner
) -> None:
    lease = reload_lease(sim.create_lease(create_tenant(), offering()))
    sim.run_with_sweeps(300)
    lost = sim.now.replace(microsecond=0)
    provisioner.says = Observation(ObservedState.LOST, "its node ran short of resources and evicted it", last_seen=lost)
    reconcile(sim, lease)
    sim.run_with_sweeps(10)
    provisioner.says = Observation(ObservedState.PENDING, "pulling image")
    sim.run_with_sweeps(60)
    ended = reload_lease(lease)
    assert (ended.end_reason, ended.ended_at) == ("device_lost", lost)
    assert "it no longer ran: pulling image" in transitions_of(lease)[-2].cause


def test_a_lease_that_recovers_within_thirty_seconds_stays_active(
    sim: Simulation, provisioner: FixedProvisioner
) -> None:
    lease = reload_lease(sim.create_lease(create_tenant(), offering()))
    sim.run_with_sweeps(300)
    provisioner.says = Observation(ObservedState.LOST, "evicted", last_seen=sim.now)
    reconcile(sim, lease)
    sim.run_with_sweeps(5)
    assert list(reload_lease(lease).conditions) == ["unreachable"]
    provisioner.says = Observation(ObservedState.PENDING, "pulling image")
    sim.run_with_sweeps(10)
    provisioner.says = None
    sim.run_with_sweeps(300)
    assert (reload_lease(lease).state, reload_lease(lease).conditions) == ("active", {})


def test_a_lease_with_a_replaced_pod_is_lost_since_the_first_pod_ended(
    sim: Simulation, provisioner: FixedProvisioner
) -> None:
    lease = reload_lease(sim.create_lease(create_tenant(), offering()))
    sim.run_with_sweeps(3 * 60)
    ended_at = sim.now.replace(microsecond=0)
    sim.clock.at += timedelta(seconds=20)
    provisioner.says = Observation(ObservedState.PENDING, "pulling image", last_seen=ended_at)
    sim.run_with_sweeps(100)
    assert state_path(lease).endswith("released")
    assert (reload_lease(lease).end_reason, reload_lease(lease).ended_at) == ("device_lost", ended_at)


def test_a_lease_released_during_an_outage_is_charged_until_its_start(sim: Simulation) -> None:
    create_gpus(1)
    lease = reload_lease(sim.create_lease(create_tenant(), offering()))
    sim.run_with_sweeps(30)
    silent = sim.now
    Cluster.objects.update(unreachable_since=silent)
    sim.clock.at += timedelta(seconds=200)
    sim.release_lease(lease)
    assert reload_lease(lease).ended_at == silent.replace(microsecond=0)


def test_a_lease_observed_after_the_outage_began_is_charged_until_then(sim: Simulation) -> None:
    create_gpus(1)
    lease = reload_lease(sim.create_lease(create_tenant(), offering()))
    Cluster.objects.update(unreachable_since=sim.now)
    sim.run_with_sweeps(20)
    with tenant_scope(lease.tenant_id):
        Lease.objects.filter(pk=lease.pk).update(seen_at=sim.now)
    seen = sim.now
    sim.clock.at += timedelta(seconds=60)
    sim.release_lease(lease)
    assert reload_lease(lease).ended_at == seen.replace(microsecond=0)


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        (ObservedState.ENDED, "by_tenant"),
        (ObservedState.LOST, "device_lost"),
        (ObservedState.GONE, "device_lost"),
    ],
)
@pytest.mark.parametrize("unreachable", [False, True])
def test_a_reported_end_is_charged_although_the_cluster_is_marked_unreachable(
    sim: Simulation, provisioner: FixedProvisioner, seen: ObservedState, reason: str, unreachable: bool
) -> None:
    lease = reload_lease(sim.create_lease(create_tenant(), offering()))
    Cluster.objects.update(unreachable_since=sim.now)  # it answers long before the next health probe
    if unreachable:
        with tenant_scope(lease.tenant_id):
            Lease.objects.update(conditions={"unreachable": "its node says nothing"})
    sim.clock.at += timedelta(seconds=60)
    ended = sim.now.replace(microsecond=0)
    sim.clock.at += timedelta(seconds=1)
    provisioner.says = Observation(seen, "it ended", last_seen=ended)
    reconcile(sim, lease)
    sim.run_with_sweeps(40)
    assert (reload_lease(lease).end_reason, reload_lease(lease).ended_at) == (reason, ended)


def test_a_lease_without_its_anchor_ends_although_its_pods_run_on(
    sim: Simulation, provisioner: FixedProvisioner
) -> None:
    lease = reload_lease(sim.create_lease(create_tenant(), offering()))
    sim.clock.at += timedelta(seconds=60)
    first = sim.now
    for _ in range(6):
        provisioner.says = Observation(ObservedState.GONE, "its anchor is gone", last_seen=sim.now)
        reconcile(sim, lease)
        sim.clock.at += timedelta(seconds=4)
    assert reload_lease(lease).end_reason == "device_lost"
    assert reload_lease(lease).ended_at is not None
    assert reload_lease(lease).ended_at >= first.replace(microsecond=0)


def test_a_lease_whose_pod_ended_and_is_recreated_is_charged_until_that_end(
    sim: Simulation, provisioner: FixedProvisioner
) -> None:
    lease = reload_lease(sim.create_lease(create_tenant(), offering()))
    Cluster.objects.update(unreachable_since=sim.now)
    sim.clock.at += timedelta(seconds=60)
    ended = sim.now.replace(microsecond=0)
    sim.clock.at += timedelta(seconds=40)
    provisioner.says = Observation(ObservedState.PENDING, "being created", last_seen=ended)
    reconcile(sim, lease)
    assert (reload_lease(lease).end_reason, reload_lease(lease).ended_at) == ("device_lost", ended)


def test_an_end_reported_in_the_future_is_charged_until_now(sim: Simulation, provisioner: FixedProvisioner) -> None:
    lease = reload_lease(sim.create_lease(create_tenant(), offering()))
    sim.clock.at += timedelta(seconds=60)
    provisioner.says = Observation(ObservedState.ENDED, "it ended", last_seen=sim.now + timedelta(seconds=5))
    reconcile(sim, lease)
    assert reload_lease(lease).ended_at == sim.now.replace(microsecond=0)


def test_an_extension_enqueues_a_reconciliation_at_once(sim: Simulation) -> None:
    create_gpus(1)
    owner = create_tenant()
    lease = reload_lease(sim.create_lease(owner, offering()))
    sim.messages.clear()
    with tenant_scope(lease.tenant_id):
        extension.extend_lease(lease, more_s=3600, actor=owner.actor, now=clock.now())
    assert ("broker.reconcile_lease", lease.pk) in [
        (task, subject) for at, _, task, subject, _ in sim.messages if at <= sim.now
    ]


def is_idle(sim: Simulation, lease: Lease) -> bool:
    with tenant_scope(lease.tenant_id):
        return idle_leases.idle_leases(Lease.objects.filter(pk=lease.pk), now=sim.now).exists()


def starting(sim: Simulation) -> Observation:
    return Observation(ObservedState.PENDING, "starting", last_seen=sim.now, running=True)


def observe_not_ready(sim: Simulation, lease: Lease, provisioner: FixedProvisioner, *, minutes: int) -> None:
    """Report every minute that the program is not ready."""
    for _ in range(minutes):
        provisioner.says = starting(sim)
        reconcile(sim, lease)
        sim.clock.at += timedelta(minutes=1)


def test_a_lease_observed_not_ready_for_15_minutes_is_idle(sim: Simulation, provisioner: FixedProvisioner) -> None:
    lease = reload_lease(sim.create_lease(create_tenant(), offering(), max_duration_s=9 * 3600))
    observe_not_ready(sim, lease, provisioner, minutes=15)
    assert is_idle(sim, lease)
    provisioner.says = None
    reconcile(sim, lease)
    assert (reload_lease(lease).degraded_since, is_idle(sim, lease)) == (None, False)


def test_a_degraded_lease_without_a_start_time_gets_one_at_the_next_observation(
    sim: Simulation, provisioner: FixedProvisioner
) -> None:
    lease = reload_lease(sim.create_lease(create_tenant(), offering(), max_duration_s=9 * 3600))
    with tenant_scope(lease.tenant_id):
        Lease.objects.filter(pk=lease.pk).update(conditions={"degraded": "starting"})
    observe_not_ready(sim, lease, provisioner, minutes=1)
    assert reload_lease(lease).degraded_since is not None


@pytest.mark.parametrize("unseen", ["unreachable", "repartitioning"])
def test_unobserved_time_does_not_count_as_idle(sim: Simulation, provisioner: FixedProvisioner, unseen: str) -> None:
    lease = reload_lease(sim.create_lease(create_tenant(), offering(), max_duration_s=9 * 3600))
    observe_not_ready(sim, lease, provisioner, minutes=14)
    with tenant_scope(lease.tenant_id):
        ill = reload_lease(lease).conditions
        Lease.objects.filter(pk=lease.pk).update(conditions={**ill, unseen: "nobody knows"})
    assert not is_idle(sim, lease)
    sim.clock.at += timedelta(minutes=2)
    assert not is_idle(sim, lease)
    observe_not_ready(sim, lease, provisioner, minutes=14)
    assert list(reload_lease(lease).conditions) == ["degraded"]
    assert not is_idle(sim, lease)
    observe_not_ready(sim, lease, provisioner, minutes=1)
    assert is_idle(sim, lease)


def test_a_lease_unobserved_for_minutes_is_not_idle(sim: Simulation, provisioner: FixedProvisioner) -> None:
    lease = reload_lease(sim.create_lease(create_tenant(), offering(), max_duration_s=9 * 3600))
    observe_not_ready(sim, lease, provisioner, minutes=15)
    sim.clock.at += timedelta(minutes=3)
    assert not is_idle(sim, lease)
