"""What a cluster tells late: an end that came before the last look, which took the lease for alive, is believed."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from broker.domain.states import EndReason
from broker.models import Lease
from broker.provisioners.base import Observation, Order, Remains, Seen
from broker.provisioners.kubernetes.objects import Pod
from broker.provisioners.kubernetes.observing import observe
from broker.provisioners.simulated import SimulatedProvisioner
from broker.services import clusters, outcomes, reconcile
from broker.services.leases.orders import order_of
from tenants.services.walls import as_tenant
from tests.world import Life, cards, fresh, home, ledger, offering

LAG = timedelta(seconds=6)  # of an agent's watch of pods behind its pulse
READY = [{"type": "Ready", "status": "True"}]
Body = dict[str, Any]


def moment(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"


def pod(uid: str, made: datetime, *, node: str = "n1", ended: datetime | None = None, **status: Any) -> Body:
    """Return a pod as its cluster shows it: one that runs, or one that was deleted and ended then."""
    meta: Body = {"name": "p-0", "uid": uid, "creationTimestamp": moment(made)}
    meta |= {"finalizers": ["gpubroker.dev/metering"]}
    state: Body = {"running": {"startedAt": moment(made)}}
    if ended:
        meta |= {"deletionTimestamp": moment(ended), "deletionGracePeriodSeconds": 0}
        state = {"terminated": {"exitCode": 137, "startedAt": moment(made), "finishedAt": moment(ended)}}
    runs: Body = {"phase": "Running", "conditions": READY, "containerStatuses": [{"state": state}]}
    spec = {"nodeName": node, "restartPolicy": "Always"}
    return {"metadata": meta, "spec": spec, "status": status or runs}


def waits(uid: str, made: datetime) -> Body:
    """Return the pod that a controller makes in another's place, and that no node has yet."""
    return pod(uid, made, node="", phase="Pending")


class Told(SimulatedProvisioner):
    """A cluster that shows the pods that it is told to; by its agent, as long as that is to be believed."""

    def __init__(self) -> None:
        self.pods: list[Body] = []
        self.remembered: list[Body] = []
        self.pulse: datetime | None = None
        self.hosts_heard: datetime | None = None  # when its node was, which is silent
        self.let_go_of: list[Remains] = []

    def observe(self, order: Order, *, now: datetime) -> Observation:
        if self.pulse and not order.doubted:
            return replace(_seen(self.remembered, now), last_seen=self.pulse)
        if heard := self.hosts_heard:
            return Observation(Seen.LOST, "node n1 lost contact", last_seen=heard, proven_until=heard)
        return _seen(self.pods, now)

    def let_go(self, order: Order, remains: tuple[Remains, ...]) -> None:
        self.let_go_of += remains


def _seen(pods: list[Body], now: datetime) -> Observation:
    decoded = [msgspec.json.decode(msgspec.json.encode(each), type=Pod) for each in pods]
    return observe(decoded, ranks=1, now=now)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Told:
    cards(1)
    made = Told()
    monkeypatch.setattr(clusters, "provisioner_of", lambda order: made)
    return made


@pytest.fixture
def lease(life: Life, cluster: Told) -> Lease:
    """Return a lease whose pod runs; a minute later its agent looks."""
    lease = fresh(life.lease(home(), offering()))
    cluster.pods = cluster.remembered = [pod("a", life.now)]
    life.hints.clear()
    life.clock.at = (life.now + timedelta(seconds=60)).replace(microsecond=0)
    return lease


def look(life: Life, lease: Lease) -> Lease:
    reconcile.step(lease.pk, lease.tenant_id, now=life.now)
    return fresh(lease)


def charged(lease: Lease) -> tuple[str, datetime]:
    step = next(step for step in ledger(lease) if step.before == "active")
    return step.reason, step.at


def ends_before_a_look_that_shows_it_running(life: Life, cluster: Told, lease: Lease) -> datetime:
    """Let its pod end while the agent's watch of pods lags behind its pulse, and a worker look."""
    ended = life.now
    cluster.pods = [pod("a", fresh(lease).active_at or ended, ended=ended)]
    life.clock.at += LAG
    cluster.pulse = life.now
    assert look(life, lease).seen_at == ended + LAG
    return ended


def test_what_was_replaced_and_never_ran_again_ends_when_its_pod_did_however_late_that_was_told(
    life: Life, cluster: Told, lease: Lease
) -> None:
    ended = ends_before_a_look_that_shows_it_running(life, cluster, lease)
    life.clock.at += timedelta(seconds=1)
    cluster.pulse = None  # the watch brings the end: it is asked of the cluster itself
    assert look(life, lease).seen_at == ended
    assert [each.uid for each in cluster.let_go_of] == ["a"]
    cluster.pods = [waits("b", life.now)]
    life.go(60)
    assert charged(lease) == (EndReason.DEVICE_LOST, ended)
    assert "nothing of it ran any longer: waiting for its node" in ledger(lease)[-2].cause


def test_a_watch_that_still_shows_a_pod_that_was_let_go_proves_nothing(
    life: Life, cluster: Told, lease: Lease
) -> None:
    ended = ends_before_a_look_that_shows_it_running(life, cluster, lease)
    cluster.pulse = None
    look(life, lease)
    cluster.pods, cluster.pulse = [waits("b", life.now)], life.now + timedelta(seconds=2)
    life.clock.at += timedelta(seconds=3)
    assert look(life, lease).seen_at == ended  # though what is remembered is ready
    life.go(60)
    assert charged(lease) == (EndReason.DEVICE_LOST, ended)


def test_what_its_controller_replaced_at_once_ended_when_it_did_and_not_when_that_was_looked_at(
    life: Life, cluster: Told, lease: Lease
) -> None:
    ended = ends_before_a_look_that_shows_it_running(life, cluster, lease)
    cluster.pulse, cluster.pods = None, [*cluster.pods, waits("b", ended + timedelta(seconds=2))]
    assert look(life, lease).seen_at == ended
    cluster.pods = cluster.pods[1:]
    life.go(60)
    assert charged(lease) == (EndReason.DEVICE_LOST, ended)


def test_what_nobody_saw_end_did_not_outlive_the_making_of_what_replaces_it(
    life: Life, cluster: Told, lease: Lease
) -> None:
    """Somebody took its finalizer away: no pod is left to tell when it ended."""
    made = life.now + timedelta(seconds=1)
    ends_before_a_look_that_shows_it_running(life, cluster, lease)
    cluster.pulse, cluster.pods = None, [waits("b", made)]
    assert look(life, lease).seen_at == made
    life.go(6 * 60)
    assert charged(lease) == (EndReason.DEVICE_LOST, made)


def test_a_tenant_who_lets_go_while_it_is_made_anew_pays_until_its_pod_ended(
    life: Life, cluster: Told, lease: Lease
) -> None:
    ended = ends_before_a_look_that_shows_it_running(life, cluster, lease)
    cluster.pulse = None
    look(life, lease)
    life.clock.at += timedelta(seconds=9)
    life.release(fresh(lease))
    assert charged(lease) == (EndReason.BY_TENANT, ended)


def test_a_tenant_who_lets_go_while_its_node_is_silent_pays_until_that_was_heard_last(
    life: Life, cluster: Told, lease: Lease
) -> None:
    heard, cluster.pulse = life.now - timedelta(seconds=4), life.now
    assert look(life, lease).seen_at == life.now
    cluster.pulse, cluster.hosts_heard = None, heard
    life.clock.at += timedelta(seconds=3)
    assert look(life, lease).seen_at == heard
    life.release(fresh(lease))
    assert charged(lease) == (EndReason.BY_TENANT, heard)


def test_what_expires_while_it_is_made_anew_ends_when_its_pod_did(
    life: Life, cluster: Told, lease: Lease
) -> None:
    ended = ends_before_a_look_that_shows_it_running(life, cluster, lease)
    cluster.pulse = None
    look(life, lease)
    cluster.pods = [waits("b", life.now)]
    life.hints.clear()
    life.clock.at = (lease.ends_at or life.now) + timedelta(seconds=31)
    look(life, lease)
    assert charged(lease) == (EndReason.EXPIRED, ended)


def test_what_runs_again_within_half_a_minute_is_charged_through(
    life: Life, cluster: Told, lease: Lease
) -> None:
    ends_before_a_look_that_shows_it_running(life, cluster, lease)
    cluster.pulse = None
    look(life, lease)
    life.clock.at += timedelta(seconds=10)
    cluster.pods = [pod("b", life.now)]
    assert look(life, lease).conditions == {}
    assert fresh(lease).seen_at == life.now
    life.release(fresh(lease))
    assert charged(lease) == (EndReason.BY_TENANT, life.now)


def test_an_end_before_anybody_took_it_for_active_costs_nothing_and_takes_nothing_back(
    life: Life, cluster: Told, lease: Lease
) -> None:
    cluster.pods = [pod("a", lease.at, ended=lease.at - timedelta(seconds=5))]
    life.clock.at = lease.at + timedelta(seconds=5)
    assert look(life, lease).seen_at == lease.at
    life.release(fresh(lease))
    assert charged(lease) == (EndReason.BY_TENANT, lease.at)


def test_an_answer_proves_life_when_it_was_asked_for_and_not_when_it_came(
    life: Life, cluster: Told, lease: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = life.now

    def slowly(order: Order, *, now: datetime) -> Observation:
        life.clock.at += timedelta(seconds=5)
        return _seen(cluster.pods, now)

    monkeypatch.setattr(cluster, "observe", slowly)
    assert look(life, lease).seen_at == asked


def test_what_is_unreachable_is_asked_of_its_cluster_and_nobody_else(
    life: Life, cluster: Told, lease: Lease
) -> None:
    with as_tenant(lease.tenant_id):
        assert not order_of(fresh(lease)).doubted
        outcomes.apply(fresh(lease), Observation(Seen.LOST, "evicted", last_seen=life.now), life.now)
        assert order_of(fresh(lease)).doubted
