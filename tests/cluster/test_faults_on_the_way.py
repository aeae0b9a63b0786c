"""Faulty and missing answers between the product and a real API server."""

import itertools
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from threading import Event, Thread

import pytest

from broker.provisioners.base import ClusterUnreachable, ObservedState
from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.agent.event_buffer import EventBuffer, WatchEvent
from broker.provisioners.kubernetes.client import transport
from broker.provisioners.kubernetes.client.kinds import CONFIG_MAP, Kind
from broker.provisioners.kubernetes.client.objects import ClusterObjectHeader
from broker.provisioners.kubernetes.client.reflector import Reflector
from broker.provisioners.kubernetes.client.transport import Transport
from broker.provisioners.kubernetes.cluster_connection import ClusterConnection
from broker.provisioners.kubernetes.observe.object_lookup import namespace_of
from broker.provisioners.kubernetes.provisioner import KubernetesProvisioner
from broker.provisioners.kubernetes.spec_conversion import lease_spec
from ports import clock
from tests.cluster.proxy import Proxy
from tests.cluster.stages import PLUGIN, KubernetesStage, gone, ready, until

pytestmark = pytest.mark.cluster


@pytest.fixture
def way(kubernetes_stage: KubernetesStage) -> Iterator[tuple[KubernetesStage, Proxy]]:
    """Put the provisioner of the stage behind a proxy."""
    with Proxy(kubernetes_stage.plane) as proxy:
        kubernetes_stage.transport = Transport(lambda: proxy.kubeconfig)
        kubernetes_stage.provisioner = provisioner(kubernetes_stage)
        yield kubernetes_stage, proxy


def provisioner(stage: KubernetesStage) -> KubernetesProvisioner:
    return KubernetesProvisioner("clu_test", ClusterConnection(stage.transport, PLUGIN))


def pods(stage: KubernetesStage) -> list[str]:
    mine = f"{labels.LEASE}={stage.lease_id}"
    found = stage.plane.api.items("/api/v1/pods", labelSelector=mine)
    return [each["metadata"]["name"] for each in found if "deletionTimestamp" not in each["metadata"]]


@pytest.mark.parametrize("kind", ["configmaps", "statefulsets"])
def test_a_conflict_at_creation_is_retried(kind: str, way: tuple[KubernetesStage, Proxy]) -> None:
    stage, proxy = way
    fault = proxy.fails(f"POST .*/{kind}", 409, body={"reason": "Conflict", "message": "try again"})
    order = stage.order()
    with suppress(ClusterUnreachable):
        stage.provisioner.ensure(order, now=stage.now)
    assert fault.times == 0
    ready(stage, order)
    assert len(pods(stage)) == 1


def test_a_conflicting_delete_is_retried(way: tuple[KubernetesStage, Proxy]) -> None:
    stage, proxy = way
    order = stage.order()
    ready(stage, order)
    fault = proxy.fails("DELETE .*/configmaps/", 409, body={"reason": "Conflict", "message": "other uid"})
    with pytest.raises(ClusterUnreachable, match="changed in the meantime"):
        stage.provisioner.remove(order, now=stage.now)
    assert fault.times == 0
    gone(stage, order)


def test_an_object_refused_by_the_server_is_reported_with_the_message(
    way: tuple[KubernetesStage, Proxy],
) -> None:
    stage, proxy = way
    words = "spec.template.spec.containers[0].env: Invalid value"
    proxy.fails("POST .*/statefulsets", 422, body={"reason": "Invalid", "message": words}, times=9)
    order = stage.order()
    seen = until(stage, lambda: stage.provisioner.ensure(order, now=stage.now), ObservedState.REFUSED)
    assert words in seen.text
    gone(stage, order)


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_server_is_retried_after_the_requested_delay(status: int, way: tuple[KubernetesStage, Proxy]) -> None:
    stage, proxy = way
    fault = proxy.fails(".*/configmaps", status, headers={"Retry-After": "1"}, times=2)
    began = clock.monotonic()
    stage.provisioner.ensure(stage.order(), now=stage.now)
    assert fault.times == 0
    assert clock.monotonic() - began >= 2
    ready(stage, stage.order())


@pytest.mark.parametrize("status", [429, 503])
def test_a_retry_delay_above_the_timeout_is_passed_on_to_the_caller(
    status: int, way: tuple[KubernetesStage, Proxy]
) -> None:
    stage, proxy = way
    proxy.fails(".*", status, headers={"Retry-After": "60"}, times=99)
    with pytest.raises(ClusterUnreachable) as silence:
        stage.provisioner.observe(stage.order(), now=stage.now)
    assert silence.value.again_in_s == 60


def test_calls_to_a_silent_server_raise_cluster_unreachable(
    way: tuple[KubernetesStage, Proxy], monkeypatch: pytest.MonkeyPatch
) -> None:
    stage, proxy = way
    order = stage.order()
    ready(stage, order)
    monkeypatch.setattr(transport, "RESPONSE_S", 1.0)
    monkeypatch.setattr(Transport.within, "__defaults__", (1.0,))
    proxy.fails(".*", hangs_s=3, times=3)
    for ask in (stage.provisioner.observe, stage.provisioner.remove, stage.provisioner.ensure):
        with pytest.raises(ClusterUnreachable):
            ask(order, now=stage.now)
    proxy.faults.clear()
    ready(stage, order)


def killed_at(moment: int, *, after: bool, asking: int) -> str:
    return f"{'after' if after else 'before'} call {moment} of {asking}"


@pytest.mark.deep
@pytest.mark.parametrize("after", [False, True])
def test_a_worker_killed_between_any_two_calls_duplicates_and_leaks_no_pod(
    after: bool, way: tuple[KubernetesStage, Proxy]
) -> None:
    """Break the connection around each call, and continue in a new process."""
    stage, proxy = way
    for moment in itertools.count(1):
        order = stage.order(moment, image="registry.example/acts:hang-0s")
        wanted = len(proxy.requests)
        _dies(stage, proxy, moment, after, lambda o=order: stage.provisioner.ensure(o, now=stage.now))  # type: ignore[misc]
        survived = len(proxy.requests) - wanted < moment
        ready(stage, order)
        assert len(pods(stage)) == 1, killed_at(moment, after=after, asking=len(proxy.requests) - wanted)
        _dies(stage, proxy, moment, after, lambda o=order: stage.provisioner.remove(o, now=stage.now))  # type: ignore[misc]
        gone(stage, order)
        assert stage.names() == []
        if survived:
            break
    assert moment > 5


def _dies(stage: KubernetesStage, proxy: Proxy, moment: int, after: bool, act: object) -> None:
    """Lose every answer from the n-th call on, then start anew."""
    assert callable(act)
    proxy.faults[:] = []
    proxy.fails(".*", times=moment - 1, before=lambda: None)  # these pass
    proxy.fails(".*", times=1, after=after)
    proxy.fails(".*", times=10**6)
    with pytest.MonkeyPatch.context() as patience, suppress(ClusterUnreachable):
        patience.setattr(transport.KubernetesApi, "_rest", _dead)
        act()
    proxy.faults[:] = []
    stage.provisioner = provisioner(stage)


def _dead(api: transport.KubernetesApi, seconds: float, error: Exception) -> None:
    """Skip retries: a killed process makes none."""
    raise error


def test_a_preempted_pod_is_reported_as_lost(way: tuple[KubernetesStage, Proxy]) -> None:
    stage, _ = way
    order = stage.order()
    ready(stage, order)
    (name,) = pods(stage)
    where = f"/api/v1/namespaces/{namespace_of(lease_spec(order))}/pods/{name}"
    moment = stage.now.strftime("%Y-%m-%dT%H:%M:%SZ")
    pushed = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    status = {"phase": "Failed", "conditions": [{**pushed, "lastTransitionTime": moment}]}
    stage.plane.api.patch(where, {"metadata": {"finalizers": ["test/holds"]}})  # else it is replaced at once
    stage.plane.api.patch(f"{where}/status", {"status": status})
    try:
        seen = stage.provisioner.observe(order, now=stage.now)
        assert seen.seen is ObservedState.LOST
        assert "preempted" in seen.text
        assert seen.last_seen is not None
    finally:
        stage.plane.api.patch(where, {"metadata": {"finalizers": None}})


def test_a_node_that_reports_fewer_gpus_rejects_the_lease_as_lost(
    way: tuple[KubernetesStage, Proxy],
) -> None:
    stage, _ = way
    stage.nodes.give(stage.node, **{"nvidia.com/gpu": 0})
    order = stage.order()
    stage.provisioner.ensure(order, now=stage.now)
    until(stage, lambda: stage.provisioner.ensure(order, now=stage.now), ObservedState.PENDING)
    stage.wait(5)
    stage.skew += timedelta(seconds=50)
    seen = until(stage, lambda: stage.provisioner.ensure(order, now=stage.now), ObservedState.LOST)
    assert "its node does not accept it" in seen.text
    gone(stage, order)


class Following:
    """One reflector in its own thread, and its events."""

    def __init__(self, proxy: Proxy, kind: Kind, marks: str) -> None:
        self.waiting, self.over = EventBuffer({kind: ClusterObjectHeader}), Event()
        self.reflector = Reflector(Transport(lambda: proxy.kubeconfig), kind, self.waiting, labels=marks)
        self.thread = Thread(target=self.reflector.follow, args=(lambda: not self.over.is_set(),), daemon=True)
        self.thread.start()

    def hears(self, how: str, name: str, *, seconds: float = 90) -> WatchEvent:
        """Wait for an event of an object with this name."""
        end = clock.monotonic() + seconds
        while clock.monotonic() < end:
            for found in self.waiting.batch(0.1):
                if found.how == how and (not name or any(name.encode() in bytes(item) for item in found.items)):
                    return found
        raise AssertionError(f"never heard {how} {name}")


@pytest.fixture
def following(way: tuple[KubernetesStage, Proxy], monkeypatch: pytest.MonkeyPatch) -> Iterator[Following]:
    stage, proxy = way
    monkeypatch.setattr(transport, "WATCH_SILENCE_S", 3.0)
    made = Following(proxy, CONFIG_MAP, f"{labels.LEASE}={stage.lease_id}")
    yield made
    made.over.set()


def test_a_watch_with_410_gone_is_listed_again_exactly_once(
    way: tuple[KubernetesStage, Proxy], following: Following
) -> None:
    stage, proxy = way
    following.hears("LISTED", "")
    expired = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old"}}
    proxy.fails("GET .*watch=true", line=expired)
    following.hears("LISTED", "")
    assert following.reflector.lists == 2
    stage.provisioner.ensure(stage.order(), now=stage.now)
    following.hears("ADDED", "g1")
    assert following.reflector.lists == 2


@pytest.mark.deep
def test_a_stalled_watch_is_replaced_and_misses_no_event(
    way: tuple[KubernetesStage, Proxy], following: Following
) -> None:
    stage, proxy = way
    following.hears("LISTED", "")
    stalls = proxy.fails("GET .*watch=true", hangs_s=60)
    end = clock.monotonic() + 90
    while stalls.times:  # the watch that is open ends in silence; the next one hangs
        assert clock.monotonic() < end
        clock.sleep(0.05)
    stage.provisioner.ensure(stage.order(), now=stage.now)
    following.hears("ADDED", "g1")
    assert following.reflector.lists == 1


def test_a_wrongly_empty_list_ends_no_lease(way: tuple[KubernetesStage, Proxy]) -> None:
    """Lists only hint; observations come from single reads."""
    stage, proxy = way
    order = stage.order()
    ready(stage, order)
    nothing = {"kind": "List", "metadata": {"resourceVersion": "1"}, "items": []}
    proxy.fails("GET /api/v1/(pods|configmaps)\\?", line=nothing, times=2)
    assert order.name not in stage.provisioner.names()
    assert stage.provisioner.observe(order, now=stage.now).seen is ObservedState.READY


def test_a_stateful_set_scaled_to_zero_is_scaled_up_again(way: tuple[KubernetesStage, Proxy]) -> None:
    stage, _ = way
    order = stage.order()
    ready(stage, order)
    (name,) = pods(stage)
    where = f"/apis/apps/v1/namespaces/{namespace_of(lease_spec(order))}/statefulsets/{name.rpartition('-')[0]}"
    stage.plane.api.patch(where, {"spec": {"replicas": 0}})
    seen = until(stage, lambda: stage.provisioner.observe(order, now=stage.now), ObservedState.LOST)
    stage.provisioner.let_go(order, seen.remains)
    stage.plane.api.until(where, lambda found: not found["status"].get("replicas"))
    stage.skew += timedelta(seconds=5)
    until(stage, lambda: stage.provisioner.observe(order, now=stage.now), ObservedState.READY)
    assert stage.plane.api.get(where)["spec"]["replicas"] == 1
