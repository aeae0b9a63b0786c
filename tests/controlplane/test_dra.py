"""ResourceClaims, allocated by the real scheduler from published devices."""

from collections.abc import Iterator

import pytest

from tests.controlplane import devices
from tests.controlplane.api import Api, Object
from tests.controlplane.devices import DRIVER, VERSION, device_class
from tests.controlplane.manifests import pod
from tests.controlplane.nodes import GpuNode, Nodes
from tests.controlplane.plane import ControlPlane


@pytest.fixture
def node(control_plane: ControlPlane, gpu_nodes: Nodes) -> Iterator[str]:
    """Publish one GPU of a node without a device plugin."""
    name = gpu_nodes.add(GpuNode(gpus=0))
    devices.publish(control_plane.api, name)
    yield name
    devices.withdraw(control_plane.api, name)


def claim(name: str, namespace: str, *, of: str, where: str = "") -> Object:
    exactly: Object = {"deviceClassName": of}
    if where:
        exactly["selectors"] = [{"cel": {"expression": where}}]
    spec = {"devices": {"requests": [{"name": "slice", "exactly": exactly}]}}
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": VERSION, "kind": "ResourceClaim", "metadata": metadata, "spec": spec}


def use(api: Api, namespace: str, node: str, name: str, where: str) -> str:
    """Create a claim and a pod that uses it; return its path."""
    api.create(claim(name, namespace, of="mig.nvidia.com", where=where))
    api.create(pod(name, namespace, node=node, claims={"gpu": name}))
    return f"/api/v1/namespaces/{namespace}/pods/{name}"


def given(api: Api, namespace: str, name: str) -> str:
    found = api.get(f"/apis/{VERSION}/namespaces/{namespace}/resourceclaims/{name}")
    return str(found["status"]["allocation"]["devices"]["results"][0]["device"])


def profile(name: str) -> str:
    return f"device.attributes['{DRIVER}'].profile == '{name}'"


def runs(pod: Object) -> bool:
    return bool(pod["status"].get("phase") == "Running")


def unschedulable(pod: Object) -> bool:
    return any(one.get("reason") == "Unschedulable" for one in pod["status"].get("conditions", []))


def test_a_claim_of_a_profile_gets_a_device_of_that_profile(
    control_plane: ControlPlane, namespace: str, node: str
) -> None:
    api = control_plane.api
    api.until(use(api, namespace, node, "slice", profile("1g.10gb")), runs)
    assert given(api, namespace, "slice").startswith("gpu-0-mig-1g10gb-19-")


def test_claims_of_a_profile_get_its_free_devices_in_published_order(
    control_plane: ControlPlane, namespace: str, node: str
) -> None:
    """The scheduler takes the first free device: selectors cannot see its placement."""
    api = control_plane.api
    chosen = f"{profile('1g.10gb')} && device.attributes['{DRIVER}'].parentUUID == '{devices.uuid(node, 0)}'"
    for number in range(3):
        api.until(use(api, namespace, node, f"slice-{number}", chosen), runs)
    found = [given(api, namespace, f"slice-{number}") for number in range(3)]
    assert found == [f"gpu-0-mig-1g10gb-19-{start}" for start in range(3)]


def test_two_slices_never_share_the_counters_of_a_gpu(control_plane: ControlPlane, namespace: str, node: str) -> None:
    api = control_plane.api
    first = use(api, namespace, node, "half", profile("4g.40gb"))
    api.until(first, runs)
    whole = use(api, namespace, node, "whole", profile("7g.80gb"))
    api.until(whole, unschedulable)
    other = use(api, namespace, node, "other-half", profile("3g.40gb"))
    api.until(other, runs)
    assert given(api, namespace, "other-half") == "gpu-0-mig-3g40gb-9-4"
    for path in (first, other):
        api.delete(path)
    for name in ("half", "other-half"):
        api.delete(f"/apis/{VERSION}/namespaces/{namespace}/resourceclaims/{name}")
    api.until(whole, runs)


def test_an_extended_resource_limit_becomes_a_claim_through_its_device_class(
    control_plane: ControlPlane, namespace: str, node: str
) -> None:
    api = control_plane.api
    selector = f"device.attributes['{DRIVER}'].type == 'mig' && {profile('2g.20gb')}"
    api.apply(device_class(f"mig-2g-{namespace}", selector, extended=f"{namespace}.example/mig-2g"))
    path = f"/api/v1/namespaces/{namespace}/pods/plain"
    api.create(pod("plain", namespace, node=node, limits={f"{namespace}.example/mig-2g": "1"}))
    seen = api.until(path, runs)
    made = seen["status"]["extendedResourceClaimStatus"]["resourceClaimName"]
    assert given(api, namespace, made).startswith("gpu-0-mig-2g20gb-14-")
    api.delete(f"/apis/{VERSION}/deviceclasses/mig-2g-{namespace}")
