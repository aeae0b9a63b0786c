"""Leases that end while the broker is stopped."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from broker.models import Lease
from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.client.transport import Transport
from broker.provisioners.kubernetes.reaper import delete_overdue
from tests.cluster.access_record import AccessRecord
from tests.cluster.installation import Installation, offering
from tests.cluster.running_agent import RunningAgent
from tests.controlplane.api import Object
from tests.controlplane.manifests import state
from tests.controlplane.nodes import Nodes
from tests.simulation import reload_lease

pytestmark = pytest.mark.cluster
HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)
ACTS = "registry.example/acts"
PODS, ANCHORS = "/api/v1/pods", "/api/v1/configmaps"


class Away:
    """Active leases, and a broker that is stopped from now on."""

    def __init__(self, installed: Installation) -> None:
        self.installed, self.api = installed, installed.plane.api

    def live(self, image: str = f"{ACTS}:pull-0s", **wanted: Any) -> Lease:
        values = {"image": image, "max_duration_s": 4 * 3600, **wanted}
        lease = self.installed.sim.request_lease(self.installed.home, offering("1g.10gb"), **values)
        return self.installed.until(lease, "active")

    def of(self, kind: str, lease: Lease) -> list[tuple[str, Object]]:
        """Return the paths and the objects of a lease."""
        found = self.api.items(kind, labelSelector=f"{labels.LEASE}={lease.pk}")
        root, _, plural = kind.rpartition("/")
        return [
            (f"{root}/namespaces/{each['metadata']['namespace']}/{plural}/{each['metadata']['name']}", each)
            for each in found
        ]

    def one(self, kind: str, lease: Lease) -> str:
        ((path, _),) = self.of(kind, lease)
        return path

    def finished(self, lease: Lease) -> datetime:
        """Wait for the end of a lease's pod, and return it."""
        over = self.api.until(self.one(PODS, lease), lambda pod: "terminated" in state(pod))
        return datetime.fromisoformat(state(over)["terminated"]["finishedAt"])

    def comes_back(self, after: timedelta = HOUR) -> None:
        self.installed.skew += after

    def is_clean(self) -> bool:
        return not self.installed.ours(PODS) and not self.installed.ours(ANCHORS)


@pytest.fixture
def away(installed: Installation) -> Away:
    return Away(installed)


def ends_by_itself(away: Away, lease: Lease) -> datetime:
    return away.finished(lease)


def is_evicted(away: Away, lease: Lease) -> datetime:
    path = away.one(PODS, lease)
    meta = {"name": path.rpartition("/")[2], "namespace": path.split("/")[4]}
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta}
    away.api.say("POST", f"{path}/eviction", eviction)
    return away.finished(lease)


def is_deleted_by_the_reaper(away: Away, lease: Lease) -> datetime:
    anchor = away.one(ANCHORS, lease)
    note = {labels.PAID_UNTIL: "2020-01-01T00:00:00Z"}
    away.api.patch(anchor, {"metadata": {"annotations": note}})
    assert delete_overdue(Transport(lambda: away.installed.kubeconfig).within(20)).deleted
    away.finished(lease)
    return datetime.fromisoformat(away.api.get(anchor)["metadata"]["deletionTimestamp"])


def runs_into_its_deadline(away: Away, lease: Lease) -> datetime:
    away.api.patch(away.one("/apis/batch/v1/jobs", lease), {"spec": {"activeDeadlineSeconds": 1}})
    return away.finished(lease)


def loses_its_anchor(away: Away, lease: Lease) -> datetime:
    away.api.delete(away.one(ANCHORS, lease), {"propagationPolicy": "Background"})
    return away.finished(lease)


ENDS: dict[str, tuple[dict[str, Any], Callable[[Away, Lease], datetime], str]] = {
    "done": (
        {"workload": "batch", "image": f"{ACTS}:succeed-2s", "command": "x"},
        ends_by_itself,
        "by_tenant",
    ),
    "failed": (
        {"workload": "batch", "image": f"{ACTS}:fail-2s", "command": "x"},
        ends_by_itself,
        "by_tenant",
    ),
    "deadline": ({"workload": "batch", "command": "x"}, runs_into_its_deadline, "by_tenant"),
    "evicted": ({}, is_evicted, "device_lost"),
    "unpaid": ({}, is_deleted_by_the_reaper, "device_lost"),
    "unpaid and slow": ({"image": f"{ACTS}:hang-1s"}, is_deleted_by_the_reaper, "device_lost"),
    "by hand": ({"workload": "vllm", "command": "some/model"}, loses_its_anchor, "device_lost"),
}


@pytest.mark.deep
def test_no_end_is_lost_while_the_broker_is_away_for_an_hour(away: Away) -> None:
    leases = {name: away.live(**wanted) for name, (wanted, _, _) in ENDS.items()}
    ended = {name: end(away, leases[name]) for name, (_, end, _) in ENDS.items()}
    away.comes_back()
    over = {name: away.installed.until(lease, "released") for name, lease in leases.items()}
    for name, lease in over.items():
        assert lease.ended_at is not None
        assert abs(lease.ended_at - ended[name]) <= SECOND, name
    assert {name: lease.end_reason for name, lease in over.items()} == {
        name: reason for name, (_, _, reason) in ENDS.items()
    }
    assert away.is_clean()


def test_an_evicted_pod_is_replaced_while_the_broker_is_running(watching: RunningAgent, away: Away) -> None:
    lease = away.live()
    was = away.of(PODS, lease)[0][1]["metadata"]["uid"]
    is_evicted(away, lease)
    end = datetime.now(UTC) + timedelta(seconds=30)

    def runs_again() -> bool:
        pods = [pod for _, pod in away.of(PODS, lease) if pod["metadata"]["uid"] != was]
        return bool(pods) and not reload_lease(lease).conditions

    while not runs_again():
        assert datetime.now(UTC) < end, away.of(PODS, lease)
        away.installed.pass_on()
    assert reload_lease(lease).state == "active"


def test_releasing_a_lease_needs_one_patch_per_pod_and_one_final_list(
    watching: RunningAgent, away: Away, record: AccessRecord
) -> None:
    watching.run_loop_until(watching.reads_are_cached)
    lease = away.live()
    record.calls.clear()
    away.installed.sim.release_lease(lease)
    away.installed.until(lease, "released")
    assert [each for each in record.calls if "pulse" not in each] == [
        "get pods",  # its last output
        "list events",  # and what the cluster did, as it began not long ago
        "patch pods",
        "delete configmaps",
        "get configmaps",
        "list pods",
    ]


@pytest.mark.deep
def test_a_manually_deleted_namespace_is_removed_after_the_broker_recorded_its_ends(away: Away) -> None:
    lease = away.live()
    space = "/".join(away.one(PODS, lease).split("/")[:5])
    away.api.delete(space)
    ended = away.finished(lease)
    assert away.api.get(space)["status"]["phase"] == "Terminating"
    away.comes_back()
    over = away.installed.until(lease, "released")
    assert over.ended_at is not None
    assert abs(over.ended_at - ended) <= SECOND
    away.api.until_gone(space)


@pytest.mark.deep
def test_a_permanently_removed_node_leaves_no_stuck_objects(away: Away, gpu_nodes: Nodes) -> None:
    lease = away.live()
    died = datetime.now(UTC)
    gpu_nodes.power(away.installed.node, on=False)
    gpu_nodes.until(away.installed.node, "Unknown")
    gpu_nodes.remove(away.installed.node)
    away.comes_back()
    over = away.installed.until(lease, "released")
    assert over.end_reason == "device_lost"
    assert over.ended_at is not None
    assert over.ended_at <= died + SECOND, "no later than it was last heard of"
    end = datetime.now(UTC) + timedelta(seconds=90)
    while not away.is_clean():  # the cluster itself waits for a while before it gives up such pods
        assert datetime.now(UTC) < end, away.of(PODS, lease)
        away.installed.pass_on()
