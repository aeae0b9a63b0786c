"""The real scheduler places exactly the slices that the broker chose."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import msgspec
import pytest

from broker.domain.geometry.host_resources import HostResources
from broker.domain.lifecycle.states import Isolation
from broker.domain.workloads.templates import Workload
from broker.provisioners.kubernetes import names
from broker.provisioners.kubernetes.agent.foreign_usage import ForeignUsage
from broker.provisioners.kubernetes.client.kinds import POD
from broker.provisioners.kubernetes.client.objects import ClusterNode, Raw, ResourceSlice
from broker.provisioners.kubernetes.drivers.base import SliceDriver
from broker.provisioners.kubernetes.drivers.device_plugin import DevicePluginDriver
from broker.provisioners.kubernetes.drivers.discovered_inventory import ForeignNodeUsage
from broker.provisioners.kubernetes.drivers.dra import DraDriver
from broker.provisioners.kubernetes.drivers.node_resources import node_resources
from broker.provisioners.kubernetes.render.spec import LeaseSpec, OfferingSpec, ProjectCeilings, SliceSpec
from broker.services.inventory.node_supplies import NodeSupply, derived_resources
from tests.broker.domain.fleet import MODELS
from tests.broker.provisioners.kubernetes.lease_specs import FLEET, LEASE, MIG, SHARE, WHOLE
from tests.cluster.installed import install, make, open_project, some_id
from tests.controlplane import devices
from tests.controlplane.api import Api, Object
from tests.controlplane.nodes import GpuNode, Nodes
from tests.controlplane.plane import ControlPlane

pytestmark = pytest.mark.cluster
PLUGIN, CLAIMS = DevicePluginDriver(MODELS), DraDriver(FLEET)
Asking = Callable[..., LeaseSpec]
TINY = HostResources(cpu_milli=100, memory_mib=64, scratch_mib=1024)


@contextmanager
def lease_factory(api: Api, driver: SliceDriver, resources: HostResources = TINY, **most: int) -> Iterator[Asking]:
    """Create leases in a new project; delete both afterwards."""
    install(api, driver)
    project = open_project(api, driver, ceilings=ProjectCeilings(**most))

    def ask(offering: OfferingSpec, *places: SliceSpec) -> LeaseSpec:
        program_spec = Workload("own", image="python:3")
        lease = replace(
            LEASE, lease_id=some_id("lse"), project=project, offering=offering, workload=program_spec, slices=places
        )
        lease = replace(lease, metered=False, offering=replace(offering, resources=resources))
        make(api, driver, lease)
        return lease

    yield ask
    api.delete(f"/api/v1/namespaces/{names.namespace_name(project.project_id, project.slug)}")
    for each in driver.cluster_objects():
        api.delete(api.path(each))


def pod_of(api: Api, lease: LeaseSpec, phase: str = "Running") -> Object:
    name = names.controller_name(lease.lease_id, lease.generation, 0, 1)
    place = names.namespace_name(lease.project.project_id, lease.project.slug)
    path = f"/api/v1/namespaces/{place}/pods/{name}-0"
    return api.until(path, lambda pod: pod.get("status", {}).get("phase") == phase)


def devices_of(api: Api, lease: LeaseSpec) -> list[str]:
    place = names.namespace_name(lease.project.project_id, lease.project.slug)
    claims = api.items(f"/apis/resource.k8s.io/v1/namespaces/{place}/resourceclaims")
    mine = [each for each in claims if lease.lease_id.removeprefix("lse_") in str(each["metadata"])]
    results = [each["status"]["allocation"]["devices"]["results"] for each in mine]
    return sorted(result["device"] for found in results for result in found)


def place(node: str, profile: str, start: int, size: int, *, gpu: int = 0) -> SliceSpec:
    return SliceSpec(node, devices.uuid(node, gpu), profile, start, size, 8, 80)


def test_a_slice_of_a_partitioned_gpu_runs_on_the_chosen_node(control_plane: ControlPlane, gpu_nodes: Nodes) -> None:
    gpu_nodes.add(GpuNode(gpus=1, cut=1, mig={"1g.10gb": 7}))
    chosen = gpu_nodes.add(GpuNode(gpus=1, cut=1, mig={"1g.10gb": 7}))
    with lease_factory(control_plane.api, PLUGIN) as ask:
        pod = pod_of(control_plane.api, ask(MIG, place(chosen, "1g.10gb", 0, 1)))
    assert pod["spec"]["nodeName"] == chosen


def test_a_pod_placed_on_a_full_node_stays_pending(control_plane: ControlPlane, gpu_nodes: Nodes) -> None:
    node = gpu_nodes.add(GpuNode(gpus=1))
    with lease_factory(control_plane.api, PLUGIN) as ask:
        first = ask(WHOLE, place(node, "whole-gpu", 0, 8))
        pod_of(control_plane.api, first)
        waits = pod_of(control_plane.api, ask(WHOLE, place(node, "whole-gpu", 0, 8)), "Pending")
    assert "nodeName" not in waits["spec"]


@pytest.mark.parametrize(
    ("gpus", "amounts"),
    [
        (8, {"cpu": "95690m", "memory": "1176300008Ki"}),
        (1, {"cpu": "3920m", "memory": "14719096Ki", "ephemeral-storage": "18242267924"}),
    ],
)
def test_the_scheduler_starts_a_lease_on_every_gpu_of_a_node_with_its_share(
    gpus: int, amounts: dict[str, str], control_plane: ControlPlane, gpu_nodes: Nodes
) -> None:
    api, name = control_plane.api, gpu_nodes.add(GpuNode(gpus=gpus, amounts=amounts))
    node = msgspec.convert(api.get(f"/api/v1/nodes/{name}"), ClusterNode)
    derived = derived_resources([NodeSupply(node_resources(node), gpus)], 8, 8, model="H100-80GB")
    with lease_factory(api, PLUGIN, derived) as ask:
        leases = [ask(WHOLE, place(name, "whole-gpu", 0, 8, gpu=gpu)) for gpu in range(gpus)]
        assert {pod_of(api, lease)["spec"]["nodeName"] for lease in leases} == {name}


@contextmanager
def daemon_set(api: Api, node: str, *, cpu: str) -> Iterator[ForeignNodeUsage]:
    """Run a daemon set that requests so much on a node; yield what the agent sees of it."""
    name, place = f"exporter-{node}", "/api/v1/namespaces/default/pods"
    marks = {"app": name}
    pod = {
        "nodeSelector": {"kubernetes.io/hostname": node},
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "exporter", "image": "exporter", "resources": {"requests": {"cpu": cpu}}}],
    }
    made = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": marks}, "template": {"metadata": {"labels": marks}, "spec": pod}},
    }
    api.create(made)
    api.until(f"{place}?labelSelector=app%3D{name}", lambda seen: bool(_placed_pods(seen)))
    usage = ForeignUsage("ins_1")
    for each in _placed_pods(api.get(place, labelSelector=f"app={name}")):
        usage.changed(POD, "ADDED", Raw(msgspec.json.encode(each)), 1)
    yield usage.by_node()[node]
    api.delete(api.path(made))


def _placed_pods(seen: Object) -> list[Object]:
    return [each for each in seen["items"] if each["spec"].get("nodeName")]


def test_the_scheduler_starts_a_lease_on_every_gpu_beside_a_large_daemon_set(
    control_plane: ControlPlane, gpu_nodes: Nodes
) -> None:
    amounts = {"cpu": "95690m", "memory": "1176300008Ki"}
    api, name = control_plane.api, gpu_nodes.add(GpuNode(gpus=8, amounts=amounts))
    node = msgspec.convert(api.get(f"/api/v1/nodes/{name}"), ClusterNode)
    with daemon_set(api, name, cpu="9") as usage:
        derived = derived_resources([NodeSupply(node_resources(node, usage), 8)], 8, 8, model="H100-80GB")
        assert derived.cpu_milli == 10_800
        with lease_factory(api, PLUGIN, derived) as ask:
            leases = [ask(WHOLE, place(name, "whole-gpu", 0, 8, gpu=gpu)) for gpu in range(8)]
            assert {pod_of(api, lease)["spec"]["nodeName"] for lease in leases} == {name}


def test_a_replica_of_a_shared_gpu_is_allocated(control_plane: ControlPlane, gpu_nodes: Nodes) -> None:
    node = gpu_nodes.add(GpuNode(gpus=1, replicas=4, sharing="mps"))
    with lease_factory(control_plane.api, PLUGIN) as ask:
        pod = pod_of(control_plane.api, ask(SHARE, place(node, "quarter", 2, 2)))
    assert pod["spec"]["nodeName"] == node


@pytest.mark.parametrize("start", [0, 5, 6])
def test_a_claim_gets_a_dynamic_slice_of_the_chosen_gpu(
    start: int, control_plane: ControlPlane, gpu_nodes: Nodes
) -> None:
    """A claim names profile and GPU; the scheduler takes the GPU's first free placement."""
    node = gpu_nodes.add(GpuNode(gpus=0))
    devices.publish(control_plane.api, node, gpus=2)
    with lease_factory(control_plane.api, CLAIMS) as ask:
        lease = ask(MIG, place(node, "1g.10gb", start, 1, gpu=1))
        pod_of(control_plane.api, lease)
        assert devices_of(control_plane.api, lease) == ["gpu-1-mig-1g10gb-19-0"]
    devices.withdraw(control_plane.api, node)


@pytest.mark.parametrize("start", [0, 5, 6])
def test_a_claim_gets_exactly_the_static_slice_chosen_by_the_broker(
    start: int, control_plane: ControlPlane, gpu_nodes: Nodes
) -> None:
    node, small = gpu_nodes.add(GpuNode(gpus=0)), devices.H100_PROFILES[0]
    devices.publish_static(control_plane.api, node, [(small, number) for number in small.starts])
    with lease_factory(control_plane.api, CLAIMS) as ask:
        lease = ask(MIG, place(node, "1g.10gb", start, 1))
        pod_of(control_plane.api, lease)
        assert devices_of(control_plane.api, lease) == [f"gpu-0-mig-19-{start}-1"]
    devices.withdraw(control_plane.api, node)


def test_claims_share_a_gpu_until_its_counters_are_exhausted(control_plane: ControlPlane, gpu_nodes: Nodes) -> None:
    node, api = gpu_nodes.add(GpuNode(gpus=0)), control_plane.api
    devices.publish(api, node)
    half = replace(MIG, profile="3g.40gb")
    with lease_factory(api, CLAIMS) as ask:
        beside = [ask(half, place(node, "3g.40gb", 0, 4)), ask(MIG, place(node, "1g.10gb", 4, 1))]
        for lease in beside:
            pod_of(api, lease)
        whole = pod_of(api, ask(WHOLE, place(node, "whole-gpu", 0, 8)), "Pending")
        overlaps = pod_of(api, ask(half, place(node, "3g.40gb", 4, 4)), "Pending")
        assert [devices_of(api, lease) for lease in beside] == [["gpu-0-mig-3g40gb-9-0"], ["gpu-0-mig-1g10gb-19-4"]]
    assert "nodeName" not in whole["spec"]
    assert "nodeName" not in overlaps["spec"]
    devices.withdraw(api, node)


def test_a_whole_gpu_is_claimed_by_its_uuid(control_plane: ControlPlane, gpu_nodes: Nodes) -> None:
    node, api = gpu_nodes.add(GpuNode(gpus=0)), control_plane.api
    devices.publish(api, node, gpus=3)
    with lease_factory(api, CLAIMS) as ask:
        lease = ask(WHOLE, place(node, "whole-gpu", 0, 8, gpu=2), place(node, "whole-gpu", 0, 8, gpu=0))
        pod_of(api, lease)
        assert devices_of(api, lease) == ["gpu-0", "gpu-2"]
    devices.withdraw(api, node)


def test_extended_resource_limits_are_satisfied_by_published_devices(
    control_plane: ControlPlane, gpu_nodes: Nodes
) -> None:
    node, api = gpu_nodes.add(GpuNode(gpus=0)), control_plane.api
    devices.publish(api, node)
    with lease_factory(api, DraDriver(FLEET, extended=True)) as ask:
        pod = pod_of(api, ask(MIG, place(node, "1g.10gb", 0, 1)))
        assert pod["status"]["extendedResourceClaimStatus"]["resourceClaimName"]
    devices.withdraw(api, node)


def test_the_project_quota_in_the_cluster_refuses_further_pods(control_plane: ControlPlane, gpu_nodes: Nodes) -> None:
    node, api = gpu_nodes.add(GpuNode(gpus=4)), control_plane.api
    with lease_factory(api, PLUGIN, gpus=1) as ask:
        first = ask(WHOLE, place(node, "whole-gpu", 0, 8))
        pod_of(api, first)
        over = ask(WHOLE, place(node, "whole-gpu", 0, 8, gpu=1))
        where = names.namespace_name(over.project.project_id, over.project.slug)
        events = f"/api/v1/namespaces/{where}/events"
        api.until(events, lambda found: "exceeded quota: gpub-hard" in str(found))
        pods = api.items(f"/api/v1/namespaces/{where}/pods")
    assert len(pods) == 1


def test_the_inventory_matches_partitioned_shared_and_published_gpus(
    control_plane: ControlPlane, gpu_nodes: Nodes
) -> None:
    api = control_plane.api
    mixed = gpu_nodes.add(GpuNode(gpus=2, cut=1, mig={"1g.10gb": 3, "2g.20gb": 2}))
    shared = gpu_nodes.add(GpuNode(gpus=2, replicas=4, sharing="time-slicing"))
    published = gpu_nodes.add(GpuNode(gpus=0))
    devices.publish(api, published, gpus=2)
    ours = {mixed, shared, published}
    nodes = [
        msgspec.convert(each, ClusterNode, strict=False)
        for each in api.items("/api/v1/nodes")
        if each["metadata"]["name"] in ours
    ]
    slices = [
        msgspec.convert(each, ResourceSlice, strict=False)
        for each in api.items("/apis/resource.k8s.io/v1/resourceslices")
    ]
    by_name = {each.name: each for each in PLUGIN.inventory(nodes, slices)}
    assert [gpu.isolation for gpu in by_name[mixed].gpus] == [Isolation.DEVICE, Isolation.HARDWARE]
    assert [len(gpu.cuts) for gpu in by_name[shared].gpus] == [4, 4]
    read = {each.name: each for each in CLAIMS.inventory(nodes, slices) if each.name in ours}
    assert [name for name in (mixed, shared) if "not published as ResourceSlices" in read[name].problems[0]] == [
        mixed,
        shared,
    ]
    found = read[published]
    assert [gpu.uuid for gpu in found.gpus] == [devices.uuid(published, gpu) for gpu in (0, 1)]
    assert {gpu.isolation for gpu in found.gpus} == {Isolation.HARDWARE}
    devices.withdraw(api, published)
