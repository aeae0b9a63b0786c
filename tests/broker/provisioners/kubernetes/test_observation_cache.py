"""Observations from the agent's cache, and the reads that confirm them."""

from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from broker.models import Cluster, ClusterObject, ClusterWatch
from broker.provisioners.base import (
    ClusterUnreachable,
    HeldPod,
    ObservedState,
    ProvisionSlice,
    ProvisionSpec,
    spec_name,
)
from broker.provisioners.kubernetes import labels, names
from broker.provisioners.kubernetes.agent.agent_heartbeat import heartbeat_ref
from broker.provisioners.kubernetes.cluster_connection import ClusterConnection
from broker.provisioners.kubernetes.drivers.device_plugin import DevicePluginDriver
from broker.provisioners.kubernetes.observe.observation_cache import ObservationCache
from broker.provisioners.kubernetes.provisioner import KubernetesProvisioner
from broker.provisioners.kubernetes.spec_conversion import lease_spec
from tests.broker.domain.fleet import MODELS
from tests.broker.provisioners.kubernetes.scripted_server import (
    ScriptedAnswer,
    ScriptedServer,
    StartServer,
    error_status,
)
from tests.simulation import MODEL, NOW

HOUR = timedelta(hours=1)
MADE = ScriptedAnswer(201, {"metadata": {"name": "x", "uid": "u-anchor", "resourceVersion": "7"}})
NOTHING = ScriptedAnswer(body={"metadata": {"resourceVersion": "5"}, "items": []})
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def provision_spec(generation: int = 1) -> ProvisionSpec:
    lease = "lse_" + "0" * 26
    place = ProvisionSlice("nod", "gpu", "whole-gpu", 0, 8, host="n01", uuid="GPU-1", grid=8, memory_gb=80)
    return ProvisionSpec(
        name=spec_name(lease, generation),
        lease_id=lease,
        generation=generation,
        placed_at=NOW,
        image="registry.example/acts:hang-1s",
        command="",
        slices=(place,),
        tenant_id="ten_" + "0" * 26,
        project_id="prj_" + "0" * 26,
        gpu_model=MODEL,
        profile="whole-gpu",
        isolation="device",
        price_class="on_demand",
        paid_until=NOW + HOUR,
    )


def a_pod(status: dict[str, Any], **meta: Any) -> dict[str, Any]:
    spec = {"nodeName": "n01", "restartPolicy": "Always"}
    held = {"name": "p", "uid": "u-p", "finalizers": ["gpubroker.dev/metering"], **meta}
    return {"metadata": held, "spec": spec, "status": status}


class Scene:
    """A provisioner, a scripted server, and the agent's rows."""

    def __init__(self, cluster: Cluster, wire: ScriptedServer) -> None:
        self.cluster, self.wire = cluster, wire
        self.memory = ObservationCache(cluster.pk, "ins_1")
        way = ClusterConnection(wire.transport, DevicePluginDriver(MODELS), "ins_1", memory=self.memory)
        self.provisioner = KubernetesProvisioner(cluster.pk, way)
        self.space = names.namespace_name(provision_spec().project_id)

    def row(self, kind: str, name: str, body: dict[str, Any], *, space: str = "", mine: str = "") -> None:
        ClusterObject.objects.update_or_create(
            cluster=self.cluster,
            kind=kind,
            namespace=space,
            name=name,
            defaults={"uid": f"u-{name}", "version": 1, "spec_name": mine, "body": body, "seen_at": NOW},
        )

    def beats(self, *, ago: timedelta = timedelta()) -> None:
        ref = heartbeat_ref(self.cluster.pk)
        self.row("ConfigMap", ref.name, {}, space=ref.namespace)
        ClusterObject.objects.filter(name=ref.name).update(seen_at=NOW - ago)

    def node(self, ready: str = "True") -> None:
        status = {"conditions": [{"type": "Ready", "status": ready}]}
        self.row("Node", "n01", {"metadata": {"name": "n01"}, "status": status})

    def anchor(self, paid_until: str = "2026-11-21T10:00:00Z", **meta: Any) -> None:
        spec = lease_spec(provision_spec(), "ins_1")
        marks = {
            "app.kubernetes.io/managed-by": "gpubroker",
            "gpubroker.dev/tenant": spec.project.tenant_id,
            "gpubroker.dev/project": spec.project.project_id,
            "gpubroker.dev/installation": "ins_1",
            "gpubroker.dev/lease": spec.lease_id,
            "gpubroker.dev/generation": "1",
        }
        made = {"name": provision_spec().name, "uid": "u-anchor", "creationTimestamp": "2026-11-21T09:00:00Z"}
        paid = {"annotations": {"gpubroker.dev/paid-until": paid_until}}
        body = {"metadata": {**made, "labels": marks, **paid, **meta}}
        self.row("ConfigMap", provision_spec().name, body, space=self.space, mine=provision_spec().name)

    def pod(self, status: dict[str, Any], **meta: Any) -> None:
        body = a_pod(status, namespace=self.space, **meta)
        self.row("Pod", "p", body, space=self.space, mine=provision_spec().name)

    def runs(self) -> None:
        self.beats()
        self.node()
        self.anchor()
        self.pod(READY)

    @property
    def verbs(self) -> list[str]:
        return [wanted.method for wanted in self.wire.requests]


def test_a_running_pod_in_a_fresh_cache_needs_no_request(cluster: Cluster, serve: StartServer) -> None:
    scene = Scene(cluster, serve())
    scene.runs()
    for look in (scene.provisioner.ensure, scene.provisioner.observe):
        seen = look(provision_spec(), now=NOW + timedelta(seconds=10))
        assert (seen.seen, seen.last_seen) == (
            ObservedState.READY,
            NOW,
        )  # proven up to the last pulse, no later
    assert scene.wire.requests == []


@pytest.mark.parametrize(("quiet_s", "proven_s"), [(5, 0), (70, 0), (71, 71)])
def test_a_stalled_pod_watch_proves_nothing_after_its_last_event(
    cluster: Cluster, serve: StartServer, quiet_s: int, proven_s: int
) -> None:
    scene, heard = Scene(cluster, serve()), NOW - timedelta(seconds=quiet_s)
    scene.runs()
    ClusterWatch.objects.create(cluster=cluster, kind="Pod", version=5, synced_at=heard, last_event_at=heard)
    seen = scene.provisioner.observe(provision_spec(), now=NOW + timedelta(seconds=3))
    assert (seen.seen, seen.last_seen) == (ObservedState.READY, NOW - timedelta(seconds=proven_s))


def test_a_doubted_lease_is_read_from_the_cluster_despite_the_cache(cluster: Cluster, serve: StartServer) -> None:
    scene = Scene(cluster, serve(error_status(404, "not found"), NOTHING))
    scene.runs()
    seen = scene.provisioner.observe(replace(provision_spec(), doubted=True), now=NOW)
    assert seen.seen is ObservedState.GONE
    assert scene.verbs[0] == "GET"


def test_creating_a_lease_sends_no_get_requests(cluster: Cluster, serve: StartServer) -> None:
    scene = Scene(cluster, serve(MADE))
    scene.beats()
    scene.node()
    first = scene.provisioner.ensure(provision_spec(), now=NOW)
    assert (first.seen, first.again_in_s) == (ObservedState.PENDING, 10)
    assert set(scene.verbs) <= {"POST", "PATCH"}
    first_calls = len(scene.verbs)
    scene.wire.requests.clear()
    scene.provisioner.ensure(provision_spec(2), now=NOW)
    assert set(scene.verbs) == {"POST"}
    assert len(scene.verbs) < first_calls  # the project's objects exist
    scene.wire.requests.clear()
    scene.anchor()
    assert scene.provisioner.ensure(provision_spec(), now=NOW).seen is ObservedState.PENDING
    assert scene.verbs == []


@pytest.mark.parametrize(
    "stale", ["agent heartbeat not written", "old heartbeat", "no node", "silent node", "terminating anchor"]
)
def test_stale_cache_data_is_read_from_the_cluster(cluster: Cluster, serve: StartServer, stale: str) -> None:
    scene = Scene(cluster, serve(error_status(404, "not found"), NOTHING))
    scene.runs()
    match stale:
        case "agent heartbeat not written":
            ClusterObject.objects.filter(name=heartbeat_ref(cluster.pk).name).delete()
        case "old heartbeat":
            scene.beats(ago=timedelta(seconds=21))
        case "no node":
            ClusterObject.objects.filter(kind="Node").delete()
        case "silent node":
            scene.node("Unknown")
        case _:
            scene.anchor(deletionTimestamp="2026-11-21T09:00:00Z")
    assert scene.provisioner.observe(provision_spec(), now=NOW).seen is ObservedState.GONE
    assert scene.verbs == ["GET", "GET"]


def test_a_possible_end_is_confirmed_by_a_cluster_read(cluster: Cluster, serve: StartServer) -> None:
    scene = Scene(cluster, serve(error_status(404, "not found"), NOTHING))
    scene.runs()
    scene.pod({"phase": "Failed"})
    assert scene.provisioner.observe(provision_spec(), now=NOW).seen is ObservedState.GONE
    assert scene.verbs == ["GET", "GET"]


def test_a_missing_pod_is_confirmed_by_a_cluster_read(cluster: Cluster, serve: StartServer) -> None:
    scene = Scene(cluster, serve(error_status(404, "not found"), NOTHING))
    scene.runs()
    ClusterObject.objects.filter(kind="Pod").delete()
    assert scene.provisioner.observe(provision_spec(), now=NOW + timedelta(seconds=2)).seen is ObservedState.PENDING
    assert scene.verbs == []
    assert scene.provisioner.observe(provision_spec(), now=NOW + timedelta(seconds=5)).seen is ObservedState.GONE
    assert scene.verbs == ["GET", "GET"]


def test_an_anchor_of_another_installation_is_ignored(cluster: Cluster, serve: StartServer) -> None:
    scene = Scene(cluster, serve())
    scene.runs()
    scene.anchor(labels={"gpubroker.dev/installation": "ins_2"})
    known = scene.memory.find_observation(lease_spec(provision_spec(), "ins_1"), now=NOW)
    assert known
    assert known.objects.anchor is None


def test_a_removal_reads_the_cluster_only_to_confirm_the_end(cluster: Cluster, serve: StartServer) -> None:
    scene = Scene(cluster, serve(ScriptedAnswer()))
    scene.runs()
    assert scene.provisioner.remove(provision_spec(), now=NOW).seen is ObservedState.PENDING
    assert scene.verbs == ["PATCH", "DELETE"]  # the pod is released: the end of its lease is recorded
    off = {"uid": "u-p", "$deleteFromPrimitiveList/finalizers": ["gpubroker.dev/metering"]}
    assert scene.wire.requests[0].body == {"metadata": off}
    assert scene.wire.requests[1].body["preconditions"] == {"uid": "u-anchor"}
    scene.anchor(deletionTimestamp="2026-11-21T09:00:00Z")
    scene.pod(READY, finalizers=[])
    assert scene.provisioner.remove(provision_spec(), now=NOW).seen is ObservedState.PENDING
    assert scene.verbs == ["PATCH", "DELETE"]
    ClusterObject.objects.exclude(spec_name="").delete()
    scene.wire.script = [error_status(404, "not found"), NOTHING]
    assert scene.provisioner.remove(provision_spec(), now=NOW).seen is ObservedState.GONE
    assert scene.verbs[2:] == ["GET", "GET"]  # gone, by the cluster's own word


def test_the_finalizer_of_a_pod_created_during_removal_is_removed(cluster: Cluster, serve: StartServer) -> None:
    scene = Scene(cluster, serve(ScriptedAnswer()))
    scene.runs()
    scene.anchor(deletionTimestamp="2026-11-21T09:00:00Z")
    scene.pod(READY, deletionTimestamp="2026-11-21T09:00:00Z")
    assert scene.provisioner.remove(provision_spec(), now=NOW).seen is ObservedState.PENDING
    assert scene.verbs == ["PATCH"]


@pytest.mark.parametrize("fresh", [True, False])
def test_a_lease_is_deleted_without_the_right_to_patch_pods(cluster: Cluster, serve: StartServer, fresh: bool) -> None:
    denied, spec = error_status(403, "pods is forbidden", reason="Forbidden"), lease_spec(provision_spec(), "ins_1")
    marks = labels.lease_labels(spec)
    anchor = ScriptedAnswer(body={"metadata": {"name": provision_spec().name, "uid": "u-anchor", "labels": marks}})
    looks = [] if fresh else [anchor, listed(a_pod(READY, namespace="gt-1"))]
    scene = Scene(cluster, serve(*looks, denied, ScriptedAnswer()))
    if fresh:
        scene.runs()
    with pytest.raises(ClusterUnreachable, match="denies"):
        scene.provisioner.remove(provision_spec(), now=NOW)
    assert scene.verbs[-2:] == ["PATCH", "DELETE"]


SUCCESSOR = "metadata.uid: Invalid value: field is immutable"


def test_an_invalid_finalizer_patch_raises_cluster_unreachable(cluster: Cluster, serve: StartServer) -> None:
    scene = Scene(cluster, serve(error_status(422, "metadata.finalizers: Forbidden", reason="Invalid")))
    with pytest.raises(ClusterUnreachable, match="Forbidden"):
        scene.provisioner.let_go(provision_spec(), (HeldPod("p", "u-p"),))


@pytest.mark.parametrize(
    "answer",
    [ScriptedAnswer(), error_status(404, "not found"), error_status(409, "another uid"), error_status(422, SUCCESSOR)],
)
def test_releasing_a_missing_or_replaced_pod_succeeds(
    cluster: Cluster, serve: StartServer, answer: ScriptedAnswer
) -> None:
    scene = Scene(cluster, serve(answer))
    scene.provisioner.let_go(provision_spec(), (HeldPod("p", "u-p"),))
    (wanted,) = scene.wire.requests
    assert wanted.method == "PATCH"
    assert wanted.path.startswith(f"/api/v1/namespaces/{scene.space}/pods/p")
    assert wanted.headers["Content-Type"] == "application/strategic-merge-patch+json"


def listed(*pods: dict[str, Any]) -> ScriptedAnswer:
    return ScriptedAnswer(body={"metadata": {"resourceVersion": "5"}, "items": list(pods)})


NODE = ScriptedAnswer(
    body={"metadata": {"name": "n01"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
)
ENDED = {"finishedAt": "2026-11-21T08:30:00Z", "exitCode": 143}
OVER = {"phase": "Failed", "containerStatuses": [{"name": "main", "state": {"terminated": ENDED}}]}
DELETED = {"deletionTimestamp": "2026-11-21T08:30:20Z"}


def test_a_lease_deleted_unobserved_ended_when_its_pod_did(cluster: Cluster, serve: StartServer) -> None:
    scene = Scene(cluster, serve(error_status(404, "not found"), listed(a_pod(OVER, **DELETED)), NODE))
    seen = scene.provisioner.observe(provision_spec(), now=NOW)
    assert (seen.seen, seen.last_seen) == (ObservedState.GONE, datetime(2026, 11, 21, 8, 30, tzinfo=UTC))


@pytest.mark.parametrize(("status", "proof"), [(READY, NOW), ({"phase": "Pending"}, None)])
def test_a_lease_without_its_anchor_is_last_seen_only_by_a_running_pod(
    cluster: Cluster, serve: StartServer, status: dict[str, Any], proof: datetime | None
) -> None:
    scene = Scene(cluster, serve(error_status(404, "not found"), listed(a_pod(status)), NODE))
    seen = scene.provisioner.observe(provision_spec(), now=NOW)
    assert (seen.seen, seen.last_seen) == (ObservedState.GONE, proof)


def test_a_deleted_pod_that_still_shuts_down_is_pending(cluster: Cluster, serve: StartServer) -> None:
    scene = Scene(cluster, serve(error_status(404, "not found"), listed(a_pod(READY, **DELETED)), NODE))
    seen = scene.provisioner.observe(provision_spec(), now=NOW)
    assert seen.seen is ObservedState.PENDING
    assert "shutting down" in seen.text


def test_a_lease_deleted_from_a_removed_node_is_lost_with_that_node(cluster: Cluster, serve: StartServer) -> None:
    missing = error_status(404, "not found")
    scene = Scene(cluster, serve(missing, listed(a_pod(READY, **DELETED)), missing, missing, missing))
    seen = scene.provisioner.observe(provision_spec(), now=NOW)
    assert (seen.seen, seen.text) == (ObservedState.LOST, "node n01 is no longer in the cluster")


def test_an_orphan_loses_its_finalizer_and_is_deleted(cluster: Cluster, serve: StartServer) -> None:
    marks = {
        "gpubroker.dev/lease": provision_spec().lease_id,
        "gpubroker.dev/generation": "1",
        "gpubroker.dev/installation": "ins_1",
    }
    orphan = listed(a_pod(OVER, namespace="gt-1", labels=marks))
    scene = Scene(
        cluster, serve(NOTHING, orphan, ScriptedAnswer(), NOTHING, NOTHING, NOTHING, orphan, ScriptedAnswer())
    )
    scene.provisioner.remove_named(provision_spec().name, now=NOW)
    assert scene.verbs == ["GET", "GET", "PATCH", "GET", "GET", "GET", "GET", "DELETE"]


@pytest.mark.parametrize(("said", "written"), [("10:00", False), ("10:15", False), ("09:59", True), ("10:30", True)])
def test_the_paid_until_time_is_written_only_outside_its_tolerance(
    cluster: Cluster, serve: StartServer, said: str, written: bool
) -> None:
    scene = Scene(cluster, serve(error_status(404, "not found"), NOTHING))
    scene.runs()
    scene.anchor(f"2026-11-21T{said}:00Z")
    scene.provisioner.observe(provision_spec(), now=NOW)
    assert bool(scene.verbs) is written


def patched_kinds_of_extended_batch(scene: Scene, of_the_job: ScriptedAnswer) -> list[str]:
    """Check an extended batch; return the changed kinds in order."""
    marks, paid = labels.lease_labels(lease_spec(provision_spec(), "ins_1")), "2026-11-21T09:59:00Z"
    meta = {"name": provision_spec().name, "uid": "u-anchor", "creationTimestamp": "2026-11-21T09:00:00Z"}
    there = ScriptedAnswer(body={"metadata": {**meta, "labels": marks, "annotations": {labels.PAID_UNTIL: paid}}})
    scene.wire.script = [there, listed(a_pod(READY)), of_the_job, MADE, NODE]
    scene.runs()
    scene.anchor(paid)
    with suppress(ClusterUnreachable):
        scene.provisioner.observe(replace(provision_spec(), workload="batch", command="train"), now=NOW)
    return [wanted.path.split("/")[-2] for wanted in scene.wire.requests if wanted.method == "PATCH"]


@pytest.mark.parametrize("of_the_job", [MADE, error_status(404, "not found")])
def test_an_extended_batch_job_is_patched_before_its_anchor(
    cluster: Cluster, serve: StartServer, of_the_job: ScriptedAnswer
) -> None:
    assert patched_kinds_of_extended_batch(Scene(cluster, serve()), of_the_job) == ["jobs", "configmaps"]


def test_a_failed_job_extension_leaves_the_anchor_unchanged(cluster: Cluster, serve: StartServer) -> None:
    """After the anchor confirms the end date, Jobs are not read again."""
    assert patched_kinds_of_extended_batch(Scene(cluster, serve()), error_status(409, "try again")) == ["jobs"]


def test_lease_names_come_from_cached_rows_with_the_installation_label(cluster: Cluster, serve: StartServer) -> None:
    scene = Scene(cluster, serve(NOTHING))
    scene.runs()
    assert scene.memory.names(now=NOW) == [provision_spec().name]
    assert scene.memory.names(now=NOW + HOUR) is None
    assert ObservationCache(cluster.pk, "").names(now=NOW) == [provision_spec().name], (
        "without a mark of ours, all are ours"
    )
    assert ObservationCache("cls_other", "ins_1").names(now=NOW) is None, "the pulse is that of one cluster"
    assert scene.provisioner.names() == []  # by the clock the pulse is old: the cluster was asked
    assert scene.verbs == ["GET", "GET"]
