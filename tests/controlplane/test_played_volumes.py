"""Simulated volumes of the test control plane."""

from tests.controlplane.api import Object
from tests.controlplane.manifests import pod
from tests.controlplane.nodes import Nodes
from tests.controlplane.plane import ControlPlane
from tests.controlplane.volumes import CLASS


def claim(namespace: str, mode: str = "ReadWriteOnce") -> Object:
    spec = {"accessModes": [mode], "resources": {"requests": {"storage": "10Gi"}}}
    metadata = {"name": "home", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def using(name: str, namespace: str, node: str) -> Object:
    made = pod(name, namespace, node=node)
    made["spec"]["volumes"] = [{"name": "home", "persistentVolumeClaim": {"claimName": "home"}}]
    return made


def test_a_volume_is_created_for_the_first_pod_and_deleted_with_its_claim(
    control_plane: ControlPlane, gpu_nodes: Nodes, namespace: str
) -> None:
    api, node = control_plane.api, gpu_nodes.add()
    home = claim(namespace)
    path, pods = api.path(home), f"/api/v1/namespaces/{namespace}/pods"
    api.create(home)
    assert api.get(path)["spec"]["storageClassName"] == CLASS
    api.create(using("first", namespace, node))
    api.until(f"{pods}/first", lambda seen: seen["status"]["phase"] == "Running")
    bound = api.get(path)
    volume = f"/api/v1/persistentvolumes/{bound['spec']['volumeName']}"
    assert bound["status"]["phase"] == "Bound"
    api.delete(f"{pods}/first")
    api.until_gone(f"{pods}/first")
    api.create(using("second", namespace, node))
    api.until(f"{pods}/second", lambda seen: seen["status"]["phase"] == "Running")
    assert api.get(path)["spec"]["volumeName"] == bound["spec"]["volumeName"]
    api.delete(f"{pods}/second")
    api.delete(path)
    api.until_gone(path)
    api.until_gone(volume)


def test_a_second_pod_waits_for_a_read_write_once_pod_claim(
    control_plane: ControlPlane, gpu_nodes: Nodes, namespace: str
) -> None:
    api, node = control_plane.api, gpu_nodes.add()
    pods = f"/api/v1/namespaces/{namespace}/pods"
    api.create(claim(namespace, "ReadWriteOncePod"))
    api.create(using("first", namespace, node))
    api.until(f"{pods}/first", lambda seen: seen["status"]["phase"] == "Running")
    api.create(using("second", namespace, node))
    waiting = api.until(f"{pods}/second", lambda seen: bool(seen["status"].get("conditions")))
    assert "ReadWriteOncePod" in waiting["status"]["conditions"][0]["message"]
    api.delete(f"{pods}/first")
    api.until(f"{pods}/second", lambda seen: seen["status"]["phase"] == "Running")
