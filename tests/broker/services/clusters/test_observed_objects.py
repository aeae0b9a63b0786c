"""Storage of observed objects and notification of their leases."""

import re
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from broker.models import Cluster, ClusterObject, ClusterWatch, Node, NodeState
from broker.services.clusters.health import node_loss
from broker.services.clusters.observed import observed_objects
from broker.services.clusters.observed.observed_objects import ObservedObject
from tests.simulation import NOW, Simulation, create_gpus, create_tenant, node_of, offering, set_node_state

EnqueuedMessages = list[tuple[str, str]]


@pytest.fixture
def enqueued(monkeypatch: pytest.MonkeyPatch) -> EnqueuedMessages:
    """Record which leases are notified."""
    reported: EnqueuedMessages = []

    def record(cluster: Cluster, orders: dict[str, tuple[str, str]], *, now: datetime, lost_devices: object) -> int:
        reported.extend(orders.values())
        return len(orders)

    monkeypatch.setattr(observed_objects.lease_notifications, "notify_leases", record)
    return reported


@pytest.fixture
def cluster(db: None) -> Cluster:
    return Cluster.objects.create(name="east", region="eu", provisioner="kubernetes", created_at=NOW)


def pod(name: str = "p", version: int = 1, *, node: str = "n01", order: str = "l-1-g1") -> ObservedObject:
    marks = {"gpubroker.dev/lease": "lse_1", "gpubroker.dev/tenant": "ten_1"}
    body: dict[str, Any] = {"metadata": {"labels": marks}, "spec": {"nodeName": node}}
    return ObservedObject("Pod", "gt-1", name, f"u-{name}", version, "lse_1", "ten_1", order, body)


def deleted(sighting: ObservedObject, version: int) -> ObservedObject:
    return replace(sighting, version=version, body=None)


LEASE_MESSAGE = ("lse_1", "ten_1")
FLEET = """
INSERT INTO broker_clusterobject (cluster_id, kind, namespace, name, uid, version, spec_name, body, seen_at)
SELECT %s, 'Pod', 'gt-1', 'p' || n, 'u-' || n, 1, '', '{"metadata": {}}', now() FROM generate_series(1, 70000) n
"""


def test_several_changes_of_a_lease_enqueue_one_message(cluster: Cluster, enqueued: EnqueuedMessages) -> None:
    assert observed_objects.record_observed(cluster, [pod("a"), pod("b"), pod("b", 2)], now=NOW) == 1
    assert enqueued == [LEASE_MESSAGE]
    assert observed_objects.record_observed(cluster, [pod("b", 2)], now=NOW) == 0
    assert enqueued == [LEASE_MESSAGE]


def test_an_older_version_never_replaces_a_newer_one(cluster: Cluster, enqueued: EnqueuedMessages) -> None:
    observed_objects.record_observed(cluster, [pod(version=5)], now=NOW)
    observed_objects.record_observed(cluster, [pod(version=4, node="n02")], now=NOW)
    observed_objects.record_observed(cluster, [deleted(pod(), 3)], now=NOW)
    assert ClusterObject.objects.get().body["spec"]["nodeName"] == "n01"


def test_a_batch_is_stored_in_one_statement_with_its_watch_version(
    cluster: Cluster, enqueued: EnqueuedMessages
) -> None:
    observed_objects.record_observed(cluster, [pod("a"), pod("b")], now=NOW)
    with CaptureQueriesContext(connection) as queries:
        observed_objects.record_observed(cluster, [pod("a", 7), pod("c", 9)], now=NOW, reached={"Pod": 9})
    words = [re.sub(r"^(--.*\n)+", "", each["sql"]).split()[0] for each in queries.captured_queries]
    assert [word for word in words if word not in ("SAVEPOINT", "RELEASE")] == ["WITH"]
    assert set(ClusterObject.objects.values_list("name", "version")) == {("a", 7), ("b", 1), ("c", 9)}
    assert ClusterWatch.objects.get().version == 9


def test_a_deleted_object_is_dropped_and_its_lease_notified(cluster: Cluster, enqueued: EnqueuedMessages) -> None:
    observed_objects.record_observed(cluster, [pod(version=5)], now=NOW)
    observed_objects.record_observed(cluster, [deleted(pod(), 6)], now=NOW)
    assert not ClusterObject.objects.exists()
    assert enqueued == [LEASE_MESSAGE, LEASE_MESSAGE]


def test_a_list_reports_objects_deleted_while_unobserved(cluster: Cluster, enqueued: EnqueuedMessages) -> None:
    observed_objects.record_observed(cluster, [pod("a", 5), pod("b", 5)], now=NOW)
    enqueued.clear()
    observed_objects.prune_missing(cluster, "Pod", {("gt-1", "a")}, version=9, now=NOW)
    assert list(ClusterObject.objects.values_list("name", flat=True)) == ["a"]
    assert enqueued == [LEASE_MESSAGE]
    enqueued.clear()
    observed_objects.prune_missing(cluster, "Pod", {("gt-1", "a")}, version=10, now=NOW)
    assert enqueued == []


@pytest.mark.deep
def test_pruning_more_objects_than_bind_parameters_works(cluster: Cluster, enqueued: EnqueuedMessages) -> None:
    """PostgreSQL takes 65,535 values beside a statement, and a large cluster has more objects."""
    with connection.cursor() as cursor:
        cursor.execute(FLEET, [cluster.pk])
    observed_objects.prune_missing(cluster, "Pod", {("gt-1", "p1")}, version=9, now=NOW)
    assert ClusterObject.objects.get().name == "p1"


def test_an_object_newer_than_the_list_is_kept(cluster: Cluster, enqueued: EnqueuedMessages) -> None:
    observed_objects.record_observed(cluster, [pod("late", 12)], now=NOW)
    observed_objects.prune_missing(cluster, "Pod", set(), version=9, now=NOW)
    assert ClusterObject.objects.exists()


def test_pruning_one_cluster_keeps_objects_of_others(cluster: Cluster, enqueued: EnqueuedMessages) -> None:
    west = Cluster.objects.create(name="west", region="eu", provisioner="kubernetes", created_at=NOW)
    observed_objects.record_observed(cluster, [pod()], now=NOW)
    observed_objects.prune_missing(west, "Pod", set(), version=9, now=NOW)
    assert ClusterObject.objects.count() == 1


def report_node(node: Node, hears: bool, sim: Simulation) -> NodeState:
    node_loss.update_node_state(node.cluster, node.name, hears=hears, now=sim.now)
    node.refresh_from_db()
    return NodeState(node.state)


def test_a_lost_node_is_ready_again_once_it_reports_and_has_no_unknown_pods(sim: Simulation) -> None:
    create_gpus(1)
    node = Node.objects.select_related("cluster").get()
    assert report_node(node, True, sim) is NodeState.READY
    assert report_node(node, False, sim) is NodeState.LOST
    assert report_node(node, False, sim) is NodeState.LOST
    observed_objects.record_observed(node.cluster, [pod(node=node.name)], now=sim.now)
    assert report_node(node, True, sim) is NodeState.LOST
    observed_objects.record_observed(node.cluster, [deleted(pod(), 2)], now=sim.now)
    assert report_node(node, True, sim) is NodeState.READY


def test_a_pod_of_a_current_lease_is_not_counted_as_unknown(sim: Simulation) -> None:
    create_gpus(1)
    lease = sim.create_lease(create_tenant(), offering())
    node = node_of(lease)
    order = f"l-{lease.pk.removeprefix('lse_')}-g{lease.generation}"
    observed_objects.record_observed(node.cluster, [pod(node=node.name, order=order)], now=sim.now)
    assert node_loss.specs_without_lease(node.cluster, node.name) == set()


def test_a_draining_node_stays_draining_when_it_reports(sim: Simulation) -> None:
    create_gpus(1)
    Node.objects.update(state=NodeState.DRAINING)
    node = Node.objects.select_related("cluster").get()
    assert report_node(node, True, sim) is NodeState.DRAINING


@pytest.mark.parametrize("decided", [NodeState.CORDONED, NodeState.DRAINING])
def test_a_lost_node_returns_to_the_state_an_operator_set(decided: NodeState, sim: Simulation) -> None:
    create_gpus(1)
    node = Node.objects.select_related("cluster").get()
    assert [report_node(node, hears, sim) for hears in (False, True)] == [NodeState.LOST, NodeState.READY]
    set_node_state(node, decided, sim)
    for _ in range(2):  # it reboots, and reboots again
        assert report_node(node, False, sim) is NodeState.LOST
        assert report_node(node, True, sim) is decided
    set_node_state(node, NodeState.READY, sim)
    assert report_node(node, True, sim) is NodeState.READY


def test_a_node_marked_lost_by_an_operator_needs_an_operator(sim: Simulation) -> None:
    create_gpus(1)
    node = Node.objects.select_related("cluster").get()
    set_node_state(node, NodeState.LOST, sim)
    for hears in (True, False, True):
        assert report_node(node, hears, sim) is NodeState.LOST
    set_node_state(node, NodeState.READY, sim)
    assert report_node(node, False, sim) is NodeState.LOST
    assert report_node(node, True, sim) is NodeState.READY


def test_a_lost_node_without_a_history_needs_an_operator(sim: Simulation) -> None:
    create_gpus(1)
    Node.objects.update(state=NodeState.LOST)
    assert report_node(Node.objects.select_related("cluster").get(), True, sim) is NodeState.LOST


def test_an_unknown_node_is_not_added_to_the_inventory(cluster: Cluster) -> None:
    node_loss.update_node_state(cluster, "control-plane", hears=False, now=NOW)
    assert not Node.objects.exists()
