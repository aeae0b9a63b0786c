"""Release of ended pods after their end is recorded."""

from datetime import datetime, timedelta

import pytest

from broker.domain.lifecycle.states import EndReason, LeaseCondition, LeaseState
from broker.models import Lease, StaleLease
from broker.provisioners.base import ClusterUnreachable, HeldPod, Observation, ObservedState, ProvisionSpec
from broker.provisioners.simulated import SimulatedProvisioner
from broker.services.reconciler import lease_reconciler, observation_outcomes
from tests.simulation import Simulation, TenantContext, create_gpus, create_tenant, offering, reload_lease

POD = (HeldPod("p", "u-p"),)


class Cluster:
    """A cluster that records what the database said at removal."""

    def __init__(self, patch: pytest.MonkeyPatch, lease: Lease) -> None:
        self.lease, self.shows, self.silent = lease, Observation(ObservedState.READY), False
        self.let_go: list[tuple[tuple[HeldPod, ...], Lease]] = []
        patch.setattr(SimulatedProvisioner, "observe", lambda *_, **__: self.shows)
        patch.setattr(SimulatedProvisioner, "let_go", self._let_go)

    def _let_go(self, _order: ProvisionSpec, remains: tuple[HeldPod, ...]) -> None:
        self.let_go.append((remains, reload_lease(self.lease)))
        if self.silent:
            raise ClusterUnreachable("timed out")

    def look(self, now: datetime) -> Lease:
        lease_reconciler.reconcile_lease(self.lease.pk, self.lease.tenant_id, now=now)
        return reload_lease(self.lease)


@pytest.fixture
def kestrel(sim: Simulation) -> TenantContext:
    create_gpus(1)
    return create_tenant("Kestrel")


@pytest.fixture
def cluster(sim: Simulation, kestrel: TenantContext, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    return Cluster(monkeypatch, sim.create_lease(kestrel, offering()))


def test_a_lost_pod_is_released_only_after_its_end_is_recorded(sim: Simulation, cluster: Cluster) -> None:
    since = sim.now + timedelta(seconds=20)
    cluster.shows = Observation(ObservedState.LOST, "its pod no longer exists", last_seen=since, remains=POD)
    lease = cluster.look(since + timedelta(seconds=5))
    ((remains, written),) = cluster.let_go
    assert remains == POD
    assert written.seen_at == since, "the end is stored before the cluster is called"
    assert LeaseCondition.UNREACHABLE in written.conditions
    assert lease.state == LeaseState.ACTIVE
    cluster.shows = Observation(ObservedState.READY)
    assert cluster.look(since + timedelta(seconds=9)).conditions == {}
    assert len(cluster.let_go) == 1


def test_a_pod_that_ended_unobserved_ends_its_lease_at_that_time(sim: Simulation, cluster: Cluster) -> None:
    since = sim.now + timedelta(seconds=20)
    cluster.shows = Observation(ObservedState.LOST, "its pod no longer exists", last_seen=since, remains=POD)
    lease = cluster.look(since + timedelta(minutes=50))
    assert (lease.end_reason, lease.ended_at) == (EndReason.DEVICE_LOST, since.replace(microsecond=0))
    assert cluster.let_go == [], "removing it does that"


def test_a_pod_whose_end_was_not_recorded_is_not_released(
    sim: Simulation, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stale(*_: object, **__: object) -> None:
        raise StaleLease(cluster.lease.pk)

    monkeypatch.setattr(observation_outcomes, "apply_observation", stale)
    cluster.shows = Observation(ObservedState.READY, remains=POD)
    cluster.look(sim.now + timedelta(seconds=20))
    assert cluster.let_go == []


def test_a_failed_pod_release_is_repeated(sim: Simulation, cluster: Cluster) -> None:
    cluster.shows, cluster.silent = Observation(ObservedState.READY, remains=POD), True
    for seconds in (20, 40):
        cluster.look(sim.now + timedelta(seconds=seconds))
    assert [remains for remains, _ in cluster.let_go] == [POD, POD]


@pytest.mark.deep
def test_a_lease_deleted_unobserved_is_charged_until_its_deletion(sim: Simulation, cluster: Cluster) -> None:
    since = sim.now + timedelta(minutes=10)
    cluster.shows = Observation(ObservedState.GONE, "it is no longer in the cluster", last_seen=since)
    lease = cluster.look(since + timedelta(minutes=50))
    assert (lease.end_reason, lease.ended_at) == (EndReason.DEVICE_LOST, since.replace(microsecond=0))


def test_a_lease_deleted_by_the_reaper_ends_as_expired(
    sim: Simulation, kestrel: TenantContext, cluster: Cluster
) -> None:
    ends_at = cluster.lease.ends_at
    assert ends_at is not None
    late = ends_at + timedelta(seconds=40)
    cluster.shows = Observation(ObservedState.GONE, "it is no longer in the cluster", last_seen=late)
    lease = cluster.look(late + timedelta(hours=1))
    assert (lease.end_reason, lease.ended_at) == (EndReason.EXPIRED, ends_at)
