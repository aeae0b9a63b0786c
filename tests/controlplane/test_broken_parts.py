"""Killed, paused and restored parts of a control plane."""

import time

import pytest
import urllib3

from tests.controlplane.api import Api, Refused
from tests.controlplane.fixtures import OwnControlPlane
from tests.controlplane.manifests import pod
from tests.controlplane.nodes import Nodes
from tests.controlplane.plane import API, ETCD, KUBELETS, ControlPlane


@pytest.fixture
def cluster(brittle_control_plane: ControlPlane) -> ControlPlane:
    return brittle_control_plane


@pytest.mark.deep
def test_a_restarted_api_server_keeps_its_objects_and_ends_old_watches(cluster: ControlPlane) -> None:
    api = cluster.api
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kept"}})
    seen = api.get("/api/v1/namespaces")["metadata"]["resourceVersion"]
    cluster.kill(API)
    with pytest.raises(urllib3.exceptions.HTTPError):
        api.get("/api/v1/namespaces/kept")
    cluster.restart(API)
    assert api.get("/api/v1/namespaces/kept")
    for number in range(3):
        api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"later-{number}"}})
    cluster.compact()
    cluster.restart(API)
    events = list(api.watch("/api/v1/namespaces", seconds=5, resourceVersion=seen))
    assert events[0]["type"] == "ERROR"
    assert events[0]["object"]["code"] == 410


def test_writes_fail_while_etcd_is_paused_and_succeed_afterwards(cluster: ControlPlane) -> None:
    cluster.pause(ETCD)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "patient"}}
    with pytest.raises(Refused) as refused:
        cluster.api.say("POST", "/api/v1/namespaces", namespace, timeout="1s")
    assert refused.value.status == 504
    cluster.resume(ETCD)
    cluster.api.until("/api/v1/namespaces/default", lambda seen: True)
    assert cluster.api.apply(namespace)["status"]["phase"] == "Active"


def stays(api: Api, path: str, phase: str) -> None:
    """Check that a dead kubelet changes no pod."""
    end = time.monotonic() + 1
    while time.monotonic() < end:
        assert api.get(path)["status"]["phase"] == phase
        time.sleep(0.05)


@pytest.mark.deep
def test_killed_kubelets_start_no_pod_and_restarted_ones_catch_up(own_control_plane: OwnControlPlane) -> None:
    cluster = own_control_plane()  # the other's kubelets hold their nodes for a minute after they died
    name = Nodes(cluster.api, "node").add()
    cluster.kill(KUBELETS)
    cluster.api.create(pod("waits", "default", node=name))
    path = "/api/v1/namespaces/default/pods/waits"
    cluster.api.until(path, lambda seen: "nodeName" in seen["spec"])
    stays(cluster.api, path, "Pending")
    cluster.run(KUBELETS)
    cluster.api.until(path, lambda seen: seen["status"]["phase"] == "Running")


@pytest.mark.deep
def test_a_restored_backup_has_an_older_resource_version_and_no_later_objects(
    own_control_plane: OwnControlPlane,
) -> None:
    cluster = own_control_plane()

    def namespace(name: str) -> None:
        cluster.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    namespace("before")
    system = cluster.api.get("/api/v1/namespaces/kube-system")["metadata"]["uid"]
    backup = cluster.back_up()
    for number in range(20):
        namespace(f"after-{number}")
    seen = int(cluster.api.get("/api/v1/namespaces")["metadata"]["resourceVersion"])
    cluster.restore(backup)
    assert cluster.api.find("/api/v1/namespaces/before")
    assert cluster.api.find("/api/v1/namespaces/after-0") is None
    assert int(cluster.api.get("/api/v1/namespaces")["metadata"]["resourceVersion"]) < seen
    assert cluster.api.get("/api/v1/namespaces/kube-system")["metadata"]["uid"] == system
