"""What ended in a cluster is kept there until our books know of it, and no longer: never the other way round."""

from datetime import datetime, timedelta

import pytest

from broker.domain.states import Condition, EndReason, LeaseState
from broker.models import Lease, StaleLease
from broker.provisioners.base import Observation, Order, Remains, Seen, Unanswered
from broker.provisioners.simulated import SimulatedProvisioner
from broker.services import outcomes, reconcile
from tests.world import Home, Life, cards, fresh, home, offering

POD = (Remains("p", "u-p"),)


class Cluster:
    """Shows one thing, and notes what our books said when it was asked to let go."""

    def __init__(self, patch: pytest.MonkeyPatch, lease: Lease) -> None:
        self.lease, self.shows, self.silent = lease, Observation(Seen.READY), False
        self.let_go: list[tuple[tuple[Remains, ...], Lease]] = []
        patch.setattr(SimulatedProvisioner, "observe", lambda *_, **__: self.shows)
        patch.setattr(SimulatedProvisioner, "let_go", self._let_go)

    def _let_go(self, _order: Order, remains: tuple[Remains, ...]) -> None:
        self.let_go.append((remains, fresh(self.lease)))
        if self.silent:
            raise Unanswered("timed out")

    def look(self, now: datetime) -> Lease:
        reconcile.step(self.lease.pk, self.lease.tenant_id, now=now)
        return fresh(self.lease)


@pytest.fixture
def kestrel(life: Life) -> Home:
    cards(1)
    return home("Kestrel")


@pytest.fixture
def cluster(life: Life, kestrel: Home, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    return Cluster(monkeypatch, life.lease(kestrel, offering()))


def test_it_is_let_go_once_its_end_is_written_and_the_lease_goes_on(life: Life, cluster: Cluster) -> None:
    since = life.now + timedelta(seconds=20)
    cluster.shows = Observation(Seen.LOST, "its pod was deleted", last_seen=since, remains=POD)
    lease = cluster.look(since + timedelta(seconds=5))
    ((remains, written),) = cluster.let_go
    assert remains == POD
    assert written.seen_at == since, "the row said it before the cluster was asked"
    assert Condition.UNREACHABLE in written.conditions
    assert lease.state == LeaseState.ACTIVE
    cluster.shows = Observation(Seen.READY)
    assert cluster.look(since + timedelta(seconds=9)).conditions == {}
    assert len(cluster.let_go) == 1


def test_what_ended_while_nobody_looked_ends_its_lease_then_and_goes_with_it(
    life: Life, cluster: Cluster
) -> None:
    since = life.now + timedelta(seconds=20)
    cluster.shows = Observation(Seen.LOST, "its pod was deleted", last_seen=since, remains=POD)
    lease = cluster.look(since + timedelta(minutes=50))
    assert (lease.end_reason, lease.ended_at) == (EndReason.DEVICE_LOST, since.replace(microsecond=0))
    assert cluster.let_go == [], "removing it does that"


def test_nothing_is_let_go_that_was_not_written_down(
    life: Life, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stale(*_: object, **__: object) -> None:
        raise StaleLease(cluster.lease.pk)

    monkeypatch.setattr(outcomes, "apply", stale)
    cluster.shows = Observation(Seen.READY, remains=POD)
    cluster.look(life.now + timedelta(seconds=20))
    assert cluster.let_go == []


def test_a_cluster_that_falls_silent_meanwhile_is_asked_again(life: Life, cluster: Cluster) -> None:
    cluster.shows, cluster.silent = Observation(Seen.READY, remains=POD), True
    for seconds in (20, 40):
        cluster.look(life.now + timedelta(seconds=seconds))
    assert [remains for remains, _ in cluster.let_go] == [POD, POD]


def test_what_was_deleted_by_hand_while_nobody_looked_is_charged_to_that_moment(
    life: Life, cluster: Cluster
) -> None:
    since = life.now + timedelta(minutes=10)
    cluster.shows = Observation(Seen.GONE, "it is no longer in the cluster", last_seen=since)
    lease = cluster.look(since + timedelta(minutes=50))
    assert (lease.end_reason, lease.ended_at) == (EndReason.DEVICE_LOST, since.replace(microsecond=0))


def test_what_the_dead_mans_switch_took_down_reached_its_end(
    life: Life, kestrel: Home, cluster: Cluster
) -> None:
    ends_at = cluster.lease.ends_at
    assert ends_at is not None
    late = ends_at + timedelta(seconds=40)
    cluster.shows = Observation(Seen.GONE, "it is no longer in the cluster", last_seen=late)
    lease = cluster.look(late + timedelta(hours=1))
    assert (lease.end_reason, lease.ended_at) == (EndReason.EXPIRED, ends_at)
