"""Simulated nodes that run, stop responding, return and report other devices."""

import pytest

from tests.controlplane.api import Object
from tests.controlplane.manifests import pod
from tests.controlplane.nodes import GpuNode, Nodes, ready
from tests.controlplane.plane import ControlPlane

UNREACHABLE = ("node.kubernetes.io/unreachable", "NoExecute")


def taints(node: Object) -> set[tuple[str, str]]:
    return {(taint["key"], taint["effect"]) for taint in node["spec"].get("taints", [])}


def test_a_node_offers_the_resources_of_its_device_plugin(control_plane: ControlPlane, gpu_nodes: Nodes) -> None:
    name = gpu_nodes.add(GpuNode(gpus=8, mig={"1g.10gb": 14}, cut=2))
    node = gpu_nodes.see(name)
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "6"
    assert node["status"]["allocatable"]["nvidia.com/mig-1g.10gb"] == "14"
    assert node["metadata"]["labels"]["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3"


def test_slices_that_are_used_up_leave_a_pod_unschedulable(
    control_plane: ControlPlane, gpu_nodes: Nodes, namespace: str
) -> None:
    node = gpu_nodes.add(GpuNode(gpus=1, cut=1, mig={"1g.10gb": 1}))
    pods = f"/api/v1/namespaces/{namespace}/pods"
    for name in ("first", "second"):
        control_plane.api.create(pod(name, namespace, node=node, limits={"nvidia.com/mig-1g.10gb": "1"}))
        if name == "first":
            control_plane.api.until(f"{pods}/first", lambda seen: seen["status"]["phase"] == "Running")
    seen = control_plane.api.until(f"{pods}/second", lambda seen: "conditions" in seen["status"])
    condition = seen["status"]["conditions"][0]
    assert (condition["type"], condition["reason"]) == ("PodScheduled", "Unschedulable")
    assert "Insufficient nvidia.com/mig-1g.10gb" in condition["message"]


@pytest.mark.deep
def test_a_powered_off_node_is_noticed_and_its_pods_are_unchanged(
    control_plane: ControlPlane, gpu_nodes: Nodes, namespace: str
) -> None:
    node, _neighbour = gpu_nodes.add(), gpu_nodes.add()  # were all silent, the cluster would doubt itself
    path = f"/api/v1/namespaces/{namespace}/pods/lost"
    control_plane.api.create(pod("lost", namespace, node=node))
    control_plane.api.until(path, lambda seen: seen["status"]["phase"] == "Running")
    gpu_nodes.power(node, on=False)
    gpu_nodes.until(node, "Unknown")
    control_plane.api.until(f"/api/v1/nodes/{node}", lambda seen: UNREACHABLE in taints(seen))
    control_plane.api.delete(path)
    held = control_plane.api.get(path)  # nobody is there who could end it
    assert held["status"]["phase"] == "Running"
    assert "deletionTimestamp" in held["metadata"]
    gpu_nodes.power(node, on=True)
    gpu_nodes.until(node, "True")
    control_plane.api.until_gone(path)


def test_a_pod_becomes_ready_again_with_its_recovered_node(
    control_plane: ControlPlane, gpu_nodes: Nodes, namespace: str
) -> None:
    node, _neighbour = gpu_nodes.add(), gpu_nodes.add()
    path = f"/api/v1/namespaces/{namespace}/pods/left"
    control_plane.api.create(pod("left", namespace, node=node))
    control_plane.api.until(path, lambda seen: ready(seen) == "True")
    gpu_nodes.power(node, on=False)
    control_plane.api.until(path, lambda seen: ready(seen) == "False")
    gpu_nodes.power(node, on=True)
    control_plane.api.until(path, lambda seen: ready(seen) == "True")


def test_a_node_can_report_itself_not_ready(control_plane: ControlPlane, gpu_nodes: Nodes) -> None:
    node = gpu_nodes.add()
    gpu_nodes.sicken(node)
    gpu_nodes.until(node, "False")
    gpu_nodes.sicken(node, sick=False)
    assert ready(gpu_nodes.until(node, "True")) == "True"


def test_a_device_plugin_can_report_fewer_devices(control_plane: ControlPlane, gpu_nodes: Nodes) -> None:
    node = gpu_nodes.add()
    gpu_nodes.give(node, **{"nvidia.com/gpu": 7})
    seen = gpu_nodes.see(node)["status"]
    assert (seen["allocatable"]["nvidia.com/gpu"], seen["capacity"]["nvidia.com/gpu"]) == ("7", "8")


def test_forty_nodes_are_added_at_once(control_plane: ControlPlane, gpu_nodes: Nodes) -> None:
    names = gpu_nodes.add_many(40, GpuNode(gpus=1))
    assert len(set(names)) == 40
    assert ready(gpu_nodes.see(names[-1])) == "True"
