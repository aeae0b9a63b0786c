"""The Kubernetes provisioner during faults of a real control plane."""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import pytest

from broker.provisioners.base import ClusterUnreachable, ObservedState, ProvisionSpec
from broker.provisioners.kubernetes import names
from broker.provisioners.kubernetes.client import transport
from broker.provisioners.kubernetes.client.api_errors import ObjectConflict
from broker.provisioners.kubernetes.client.cluster_identity import read_cluster_uid
from broker.provisioners.kubernetes.client.kinds import CONFIG_MAP, ObjectRef
from broker.provisioners.kubernetes.client.transport import Transport
from broker.provisioners.kubernetes.cluster_connection import ClusterConnection
from broker.provisioners.kubernetes.provisioner import KubernetesProvisioner
from broker.services.reconciler import lease_reconciler
from tests.cluster.stages import PLUGIN, KubernetesStage, gone, ready, until
from tests.controlplane.api import Object
from tests.controlplane.manifests import state
from tests.controlplane.nodes import Nodes
from tests.controlplane.plane import KUBELETS, MANAGER, SCHEDULER, ControlPlane

PATIENCE_S, MANY = 2.0, 1000


def space(order: ProvisionSpec) -> str:
    return f"/api/v1/namespaces/{names.namespace_name(order.project_id)}"


def anchor_path(order: ProvisionSpec) -> str:
    return f"{space(order)}/configmaps/{order.name}"


def set_path(order: ProvisionSpec) -> str:
    return f"/apis/apps/v1/namespaces/{names.namespace_name(order.project_id)}/statefulsets/{order.name}"


def pod_path(order: ProvisionSpec) -> str:
    return f"{space(order)}/pods/{order.name}-0"


def config_map(order: ProvisionSpec, name: str) -> Object:
    meta = {"name": name, "namespace": names.namespace_name(order.project_id)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"mine": "not yours"}}


def test_a_foreign_object_with_our_name_is_neither_adopted_nor_deleted(
    kubernetes_stage: KubernetesStage,
) -> None:
    stage = kubernetes_stage
    ready(stage, stage.order(1))  # so that the namespace is there
    order = stage.order(2)
    stage.plane.api.create(config_map(order, order.name))
    seen = stage.provisioner.ensure(order, now=stage.now)
    assert seen.seen is ObservedState.REFUSED
    assert "exists and is not managed by this broker" in seen.text
    assert stage.provisioner.observe(order, now=stage.now).seen is ObservedState.GONE
    gone(stage, order)
    stage.provisioner.remove_named(order.name, now=stage.now)
    assert stage.plane.api.get(anchor_path(order))["data"] == {"mine": "not yours"}
    assert stage.names() == [stage.order(1).name]


def test_a_delete_with_an_outdated_uid_keeps_the_new_object(
    kubernetes_stage: KubernetesStage,
) -> None:
    stage, order = kubernetes_stage, kubernetes_stage.order()
    ready(stage, order)
    ref = ObjectRef(CONFIG_MAP, order.name, names.namespace_name(order.project_id))
    with pytest.raises(ObjectConflict):
        stage.transport.within().delete(ref, uid="00000000-0000-0000-0000-000000000000")
    assert stage.provisioner.observe(order, now=stage.now).seen is ObservedState.READY


def test_a_deleted_stateful_set_of_a_lease_is_created_again(kubernetes_stage: KubernetesStage) -> None:
    stage, order = kubernetes_stage, kubernetes_stage.order()
    ready(stage, order)
    was = stage.plane.api.get(set_path(order))["metadata"]["uid"]
    stage.plane.api.delete(set_path(order), propagationPolicy="Foreground")
    seen = until(stage, lambda: stage.provisioner.observe(order, now=stage.now), ObservedState.LOST)
    stage.provisioner.let_go(order, seen.remains)
    stage.plane.api.until_gone(set_path(order))
    stage.skew += timedelta(seconds=5)  # of the anchor's age
    until(stage, lambda: stage.provisioner.observe(order, now=stage.now), ObservedState.READY)
    assert stage.plane.api.get(set_path(order))["metadata"]["uid"] != was


@pytest.mark.deep
def test_a_manually_deleted_namespace_is_reported_lost_and_created_again(
    kubernetes_stage: KubernetesStage,
) -> None:
    stage, order = kubernetes_stage, kubernetes_stage.order()
    ready(stage, order)
    stage.plane.api.delete(space(order))
    stage.plane.api.until(pod_path(order), lambda pod: "terminated" in state(pod))
    seen = until(stage, lambda: stage.provisioner.observe(order, now=stage.now), ObservedState.LOST)
    stage.provisioner.let_go(order, seen.remains)
    stage.plane.api.until_gone(anchor_path(order))  # pods are the first to go, and all else waits for them
    until(stage, lambda: stage.provisioner.observe(order, now=stage.now), ObservedState.GONE)
    gone(stage, order)
    stage.plane.api.until_gone(space(order))

    def again() -> object:
        try:
            return stage.provisioner.ensure(stage.order(2), now=stage.now).seen
        except ClusterUnreachable:
            return None

    end = time.monotonic() + 90
    while again() is not ObservedState.READY:
        assert time.monotonic() < end
        time.sleep(0.2)


def test_an_exhausted_resource_quota_is_named_in_the_progress_text(kubernetes_stage: KubernetesStage) -> None:
    stage = kubernetes_stage
    ready(stage, stage.order(1))
    order = stage.order(2)
    stage.plane.api.patch(f"{space(order)}/resourcequotas/gpub-hard", {"spec": {"hard": {"pods": "1"}}})
    stage.provisioner.ensure(order, now=stage.now)
    stage.skew += timedelta(seconds=5)  # after which its controller is asked why
    end = time.monotonic() + 90
    while "quota" not in (seen := stage.provisioner.ensure(order, now=stage.now)).text:
        assert time.monotonic() < end, seen
        time.sleep(0.3)
    assert seen.seen is ObservedState.PENDING


def test_calls_without_rights_raise_cluster_unreachable(kubernetes_stage: KubernetesStage) -> None:
    stage, order = kubernetes_stage, kubernetes_stage.order()
    ready(stage, order)
    nobody = Transport(lambda: stage.plane.kubeconfig("nobody"))
    powerless = KubernetesProvisioner("clu_test", ClusterConnection(nobody, PLUGIN))
    for ask in (powerless.observe, powerless.remove, powerless.ensure):
        with pytest.raises(ClusterUnreachable, match="denies"):
            ask(order, now=stage.now)
    with pytest.raises(ClusterUnreachable, match="denies"):
        powerless.names()
    assert stage.provisioner.observe(order, now=stage.now).seen is ObservedState.READY


def test_calls_with_a_revoked_token_raise_cluster_unreachable(kubernetes_stage: KubernetesStage) -> None:
    stage, order = kubernetes_stage, kubernetes_stage.order()
    revoked = Transport(lambda: stage.plane.kubeconfig_of_token("revoked"))
    with pytest.raises(ClusterUnreachable, match="denies"):
        KubernetesProvisioner("clu_test", ClusterConnection(revoked, PLUGIN)).observe(order, now=stage.now)


def test_a_pod_held_by_a_foreign_finalizer_stays_pending_and_names_it(
    kubernetes_stage: KubernetesStage,
) -> None:
    stage, order = kubernetes_stage, kubernetes_stage.order()
    ready(stage, order)
    stage.plane.api.patch(pod_path(order), {"metadata": {"finalizers": ["stranger.example/holds"]}})
    stage.provisioner.remove(order, now=stage.now)
    stage.plane.api.until(pod_path(order), lambda pod: "terminated" in state(pod))
    assert stage.provisioner.remove(order, now=stage.now).seen is ObservedState.PENDING
    stage.skew += timedelta(minutes=12)
    seen = stage.provisioner.remove(order, now=stage.now)
    assert "stranger.example/holds" in seen.text
    stage.plane.api.patch(pod_path(order), {"metadata": {"finalizers": None}})
    gone(stage, order)


def test_an_oom_killed_program_is_restarted(kubernetes_stage: KubernetesStage) -> None:
    stage = kubernetes_stage
    order = stage.order(image="registry.example/acts:oom-1s")
    ready(stage, order)
    seen = until(stage, lambda: stage.provisioner.observe(order, now=stage.now), ObservedState.PENDING)
    assert "OOMKilled" in seen.text
    assert stage.names() == [order.name]


def test_an_evicted_pod_is_replaced(kubernetes_stage: KubernetesStage) -> None:
    stage, order = kubernetes_stage, kubernetes_stage.order()
    ready(stage, order)
    was = stage.plane.api.get(pod_path(order))["metadata"]["uid"]
    stage.plane.api.delete(pod_path(order))
    seen = until(stage, lambda: stage.provisioner.observe(order, now=stage.now), ObservedState.LOST)
    assert [each.uid for each in seen.remains] == [was], "it stays until its end is written down"
    stage.provisioner.let_go(order, seen.remains)
    stage.plane.api.until(pod_path(order), lambda pod: pod["metadata"]["uid"] != was)
    until(stage, lambda: stage.provisioner.observe(order, now=stage.now), ObservedState.READY)


def test_the_paid_until_annotation_follows_an_extension(kubernetes_stage: KubernetesStage) -> None:
    stage, order = kubernetes_stage, kubernetes_stage.order()
    ready(stage, order)
    assert order.paid_until is not None
    later = replace(order, paid_until=order.paid_until + timedelta(hours=5))
    stage.provisioner.observe(later, now=stage.now)
    notes = stage.plane.api.get(anchor_path(order))["metadata"]["annotations"]
    assert later.paid_until is not None
    assert notes["gpubroker.dev/paid-until"] == later.paid_until.strftime("%Y-%m-%dT%H:%M:%SZ")


def test_a_deleted_node_is_reported_as_lost(kubernetes_stage: KubernetesStage) -> None:
    stage, order = kubernetes_stage, kubernetes_stage.order()
    ready(stage, order)
    stage.nodes.remove(stage.node)
    seen = until(stage, lambda: stage.provisioner.observe(order, now=stage.now), ObservedState.LOST)
    assert "no longer in the cluster" in seen.text


@pytest.fixture
def brittle(
    brittle_control_plane: ControlPlane, brittle_nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> Iterator[KubernetesStage]:
    """Create a provisioner with short timeouts for a breaking control plane."""
    monkeypatch.setattr(Transport.within, "__defaults__", (PATIENCE_S,))
    made = KubernetesStage(brittle_control_plane, brittle_nodes)
    yield made
    brittle_control_plane.mend()
    made.clear()


def gives_up_in_time(ask: Callable[[], object]) -> None:
    began = time.monotonic()
    with pytest.raises(ClusterUnreachable):
        ask()
    assert time.monotonic() - began < PATIENCE_S + 20  # and not for ever


def test_the_response_timeout_is_shorter_than_a_workers_claim() -> None:
    assert (lease_reconciler.CLAIM_TIME - lease_reconciler.LATEST_START).total_seconds() > transport.RESPONSE_S


@pytest.mark.parametrize("part", ["kube-apiserver", "etcd"])
def test_a_killed_and_restarted_control_plane_loses_no_lease(part: str, brittle: KubernetesStage) -> None:
    stage, order = brittle, brittle.order()
    ready(stage, order)
    stage.plane.kill(part)
    gives_up_in_time(lambda: stage.provisioner.observe(order, now=stage.now))
    stage.plane.run(part)
    end, seen = time.monotonic() + 90, None
    while seen is not ObservedState.READY:
        assert time.monotonic() < end, seen
        with suppress(ClusterUnreachable):
            seen = stage.provisioner.observe(order, now=stage.now).seen
        time.sleep(0.2)
    gone(stage, order)


@pytest.mark.deep
def test_a_control_plane_restored_from_a_backup_ends_no_lease(brittle: KubernetesStage) -> None:
    stage, order = brittle, brittle.order()
    backup = stage.plane.back_up()
    ready(stage, order)
    path = f"/api/v1/nodes/{stage.node}"
    for turn in range(MANY):  # of what else happens in a cluster before it comes to that
        stage.plane.api.patch(path, {"metadata": {"annotations": {"example.org/turn": str(turn)}}})
    reached = int(stage.plane.api.get(path)["metadata"]["resourceVersion"])
    joined = read_cluster_uid(stage.transport.within())
    way = ClusterConnection(stage.transport, PLUGIN, uid=lambda: joined, reached=lambda: reached)
    knows = KubernetesProvisioner("clu_test", way)
    assert knows.observe(order, now=stage.now).seen is ObservedState.READY
    stage.plane.restore(backup)
    for part in (MANAGER, SCHEDULER, KUBELETS):  # they follow from a version that is yet to come
        stage.plane.restart(part)
    assert stage.provisioner.observe(order, now=stage.now).seen is ObservedState.GONE, "of which it knows nothing"
    again = KubernetesProvisioner("clu_test", way)  # whoever was just sure of it asks anew within seconds
    for ask in (again.observe, again.remove, again.ensure):
        with pytest.raises(ClusterUnreachable, match="its state is older than seen before"):
            ask(order, now=stage.now)


def test_calls_to_a_hanging_control_plane_time_out(brittle: KubernetesStage) -> None:
    stage, order = brittle, brittle.order()
    ready(stage, order)
    stage.plane.pause("kube-apiserver")
    gives_up_in_time(lambda: stage.provisioner.ensure(order, now=stage.now))
    stage.plane.resume("kube-apiserver")
    until(stage, lambda: stage.provisioner.observe(order, now=stage.now), ObservedState.READY)
