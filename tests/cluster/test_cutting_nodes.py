"""Contract of every node partitioner, simulated and real."""

import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Protocol

import pytest

from broker.domain.repartition.gpu_layouts import WHOLE_GPU_LAYOUT, GpuLayout
from broker.domain.repartition.mig_configs import layout_alias, layout_name, slices_offered
from broker.domain.repartition.repartition_steps import ObservedLayout, RepartitionStep
from broker.models import Cluster, Node
from broker.provisioners.base import ClusterUnreachable
from broker.provisioners.kubernetes.client.transport import Transport
from broker.provisioners.kubernetes.mig_partitioner import MigManagerPartitioner
from broker.provisioners.node_partitioner import NodePartitioner, PartitionedNode
from broker.provisioners.simulated_partitioner import SimulatedPartitioner
from broker.services.repartition import node_partitioners
from tests.broker.domain.fleet import resource_name
from tests.broker.services.repartition.fixed_layouts import (
    ONES,
    THREES,
    Driver,
    approve_repartition,
    break_node,
    create_fixed_nodes,
)
from tests.controlplane.manifests import pod
from tests.controlplane.nodes import GpuNode, Nodes
from tests.controlplane.plane import ControlPlane
from tests.simulation import NOW, Simulation, create_tenant, offering, reload_lease, simulate

WANTED = {0: ONES, 1: GpuLayout.from_names(["3g.40gb", "4g.40gb"])}
NAME = layout_name(WANTED)
MANNERS = {"obeys": [], "fails": ["fails"], "wedges-once": ["wedges"]}


class Stage(Protocol):
    hands: NodePartitioner
    machine: PartitionedNode

    @property
    def now(self) -> datetime: ...
    def wait(self) -> None: ...


class SimulatedStage:
    def __init__(self, manners: str) -> None:
        self.hands, self.now = SimulatedPartitioner(), NOW
        (node,) = create_fixed_nodes(cut=WHOLE_GPU_LAYOUT)
        self.machine = PartitionedNode(node.pk, node.name, node.cluster_id)
        break_node(node, *MANNERS[manners])

    def wait(self) -> None:
        self.now += timedelta(seconds=10)


class KubernetesStage:
    def __init__(self, plane: ControlPlane, nodes: Nodes, manners: str) -> None:
        self.machine = PartitionedNode("nod", real_node(nodes, manners, WANTED), "clu")
        self.hands = real_partitioner(plane)

    @property
    def now(self) -> datetime:
        return datetime.now(UTC)

    def wait(self) -> None:
        time.sleep(0.1)


def real_node(nodes: Nodes, manners: str, *layouts: dict[int, GpuLayout]) -> str:
    """Add a node with two uncut GPUs whose mig-manager has learned these layouts."""
    known = {}
    for cuts in layouts:
        slots = slices_offered(cuts.values())
        offers = {"nvidia.com/gpu": 0, **{resource_name(profile): count for profile, count in slots.items()}}
        known |= {layout_name(cuts): offers, layout_alias(layout_name(cuts)): offers}
    return nodes.add(GpuNode(gpus=2, layouts=known, manners=manners))


def real_partitioner(plane: ControlPlane, *, learns_within: timedelta = timedelta()) -> MigManagerPartitioner:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gpu-operator"}}
    plane.api.apply(namespace)
    transport = Transport(lambda: plane.kubeconfig("admin", "system:masters"))
    return MigManagerPartitioner(transport_of=lambda cluster: transport, learns_within=learns_within)


def publish_layouts(plane: ControlPlane, node: str, most: dict[str, int]) -> str:
    """Publish a node's possible layouts as mig-manager does; return the path."""
    layouts = [{"devices": "all", "mig-enabled": True, "mig-devices": most}]
    marks = {"app.kubernetes.io/component": "nvidia-mig-manager", "nvidia.com/node-name": node}
    meta = {"name": f"{node}-mig-config", "namespace": "gpu-operator", "labels": marks}
    data = {"config.yaml": json.dumps({"version": "v1", "mig-configs": {"balanced": layouts}})}
    plane.api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data})
    return f"/api/v1/namespaces/gpu-operator/configmaps/{meta['name']}"


@pytest.fixture(params=["simulated", pytest.param("kubernetes", marks=pytest.mark.cluster)])
def stage(request: pytest.FixtureRequest, db: None) -> Callable[[str], Stage]:
    if request.param == "simulated":
        return SimulatedStage
    plane, nodes = request.getfixturevalue("control_plane"), request.getfixturevalue("gpu_nodes")
    return lambda manners: KubernetesStage(plane, nodes, manners)


def until(stage: Stage, right: Callable[[ObservedLayout], bool]) -> ObservedLayout:
    for _ in range(600):  # a busy machine is not a failure
        seen = stage.hands.observe(stage.machine, now=stage.now)
        if right(seen):
            return seen
        stage.wait()
    raise AssertionError(f"still {seen}")


def request_layout(stage: Stage, name: str) -> None:
    """Repartition a node from its present state; retry on change."""
    assert stage.hands.prepare(stage.machine, WANTED, now=stage.now) == timedelta()
    for _ in range(20):
        version = stage.hands.observe(stage.machine, now=stage.now).version
        if stage.hands.apply_config(stage.machine, name, version=version, now=stage.now):
            return
    raise AssertionError("the node never stands still")


def test_an_unpartitioned_node_is_observed_with_its_whole_gpus(stage: Callable[[str], Stage]) -> None:
    here = stage("obeys")
    seen = here.hands.observe(here.machine, now=here.now)
    assert (seen.config, seen.tainted, seen.pods, seen.exists) == ("", False, 0, True)
    assert dict(seen.slots) == {"whole-gpu": 2}
    assert here.hands.profiles([here.machine]).get(here.machine.id) is None


def test_setting_and_removing_a_taint_is_idempotent(stage: Callable[[str], Stage]) -> None:
    here = stage("obeys")
    for on in (True, True, False, False):
        here.hands.taint(here.machine, on=on)
        assert here.hands.observe(here.machine, now=here.now).tainted is on


def test_a_working_node_offers_the_requested_layout(stage: Callable[[str], Stage]) -> None:
    here = stage("obeys")
    request_layout(here, NAME)
    seen = until(here, lambda seen: seen.state == "success")
    assert (seen.config, dict(seen.slots)) == (NAME, slices_offered(WANTED.values()))


def test_the_success_of_the_last_layout_does_not_count_for_the_next(stage: Callable[[str], Stage]) -> None:
    here = stage("obeys")
    request_layout(here, NAME)
    until(here, lambda seen: seen.state == "success")
    request_layout(here, layout_alias(NAME))
    assert here.hands.observe(here.machine, now=here.now).state in ("", "pending")
    until(here, lambda seen: seen.state == "success")


def test_a_layout_is_not_applied_for_a_stale_node_version(stage: Callable[[str], Stage]) -> None:
    here = stage("obeys")
    old = here.hands.observe(here.machine, now=here.now).version
    here.hands.prepare(here.machine, WANTED, now=here.now)
    here.hands.taint(here.machine, on=True)
    assert not here.hands.apply_config(here.machine, NAME, version=old, now=here.now)
    assert here.hands.observe(here.machine, now=here.now).config == ""


def test_a_failed_layout_change_is_reported(stage: Callable[[str], Stage]) -> None:
    here = stage("fails")
    request_layout(here, NAME)
    until(here, lambda seen: seen.state == "failed")


def test_a_hanging_layout_change_recovers_by_an_alias_and_back(stage: Callable[[str], Stage]) -> None:
    here = stage("wedges-once")
    request_layout(here, NAME)
    until(here, lambda seen: seen.state == "pending")
    for _ in range(8):
        here.wait()
    assert here.hands.observe(here.machine, now=here.now).state == "pending"
    request_layout(here, layout_alias(NAME))
    until(here, lambda seen: seen.state in ("pending", "success"))
    here.wait()
    request_layout(here, NAME)
    # A node says that it is done before its plugin reports what there is now.
    seen = until(here, lambda seen: seen.state == "success" and bool(seen.slots))
    assert dict(seen.slots) == slices_offered(WANTED.values())


class TestReal:
    """Tests that need a real control plane."""

    def test_other_taints_are_kept(self, control_plane: ControlPlane, gpu_nodes: Nodes) -> None:
        here = KubernetesStage(control_plane, gpu_nodes, "obeys")
        path = f"/api/v1/nodes/{here.machine.name}"
        other = {"key": "example.org/new", "value": "x", "effect": "PreferNoSchedule"}
        control_plane.api.patch(path, {"spec": {"taints": [other]}})
        here.hands.taint(here.machine, on=True)
        assert other in control_plane.api.get(path)["spec"]["taints"]
        here.hands.taint(here.machine, on=False)
        assert control_plane.api.get(path)["spec"]["taints"] == [other]

    def test_only_pods_with_a_slice_are_counted(
        self, control_plane: ControlPlane, gpu_nodes: Nodes, namespace: str
    ) -> None:
        here = KubernetesStage(control_plane, gpu_nodes, "obeys")
        name = here.machine.name
        control_plane.api.create(pod("holds", namespace, node=name, limits={"nvidia.com/gpu": "1"}))
        control_plane.api.create(pod("idles", namespace, node=name))
        idles = f"/api/v1/namespaces/{namespace}/pods/idles"
        control_plane.api.until(idles, lambda seen: seen["status"]["phase"] == "Running")
        until(here, lambda seen: seen.pods == 1)
        assert here.hands.observe(here.machine, now=here.now).pods == 1

    def test_a_deleted_node_is_observed_as_missing(self, control_plane: ControlPlane, gpu_nodes: Nodes) -> None:
        here = KubernetesStage(control_plane, gpu_nodes, "obeys")
        gpu_nodes.remove(here.machine.name)
        until(here, lambda seen: not seen.exists)
        here.hands.taint(here.machine, on=False)
        assert not here.hands.apply_config(here.machine, NAME, version="1", now=here.now)

    def test_new_layouts_are_added_to_the_existing_config_map(
        self, control_plane: ControlPlane, gpu_nodes: Nodes
    ) -> None:
        here = KubernetesStage(control_plane, gpu_nodes, "obeys")
        hands = real_partitioner(control_plane, learns_within=timedelta(minutes=2))
        first, second = {0: ONES}, {0: THREES}
        with_others = {"data": {"config.yaml": "version: v1\nmig-configs: {all-disabled: [{mig-enabled: false}]}\n"}}
        hands.prepare(here.machine, {0: WHOLE_GPU_LAYOUT}, now=NOW)
        path = "/api/v1/namespaces/gpu-operator/configmaps/gpubroker-mig"
        control_plane.api.patch(path, with_others)
        assert hands.prepare(here.machine, first, now=NOW) == timedelta(minutes=2)
        later = NOW + timedelta(seconds=90)
        assert hands.prepare(here.machine, first, now=later) == timedelta(seconds=30)
        assert hands.prepare(here.machine, second, now=later) == timedelta(minutes=2)
        text = control_plane.api.get(path)["data"]["config.yaml"]
        assert all(word in text for word in ("all-disabled", layout_name(first), layout_alias(layout_name(second))))
        control_plane.api.delete(path)

    def test_supported_profiles_are_read_from_the_config_map_of_the_node(
        self, control_plane: ControlPlane, gpu_nodes: Nodes
    ) -> None:
        here = KubernetesStage(control_plane, gpu_nodes, "obeys")
        mute, other = PartitionedNode("mute", "mute", "clu"), PartitionedNode("other", "other", "clu")
        all_of_them = [here.machine, mute, other]
        assert here.hands.profiles(all_of_them) == {}
        path = publish_layouts(control_plane, here.machine.name, {"1g.10gb": 7})
        others = publish_layouts(control_plane, "other", {"3g.40gb": 2})
        assert here.hands.profiles(all_of_them) == {"nod": {"1g.10gb": 7}, "other": {"3g.40gb": 2}}
        assert here.hands.profiles([here.machine]) == {"nod": {"1g.10gb": 7}}
        control_plane.api.patch(path, {"data": {"config.yaml": "what: ever"}})
        assert here.hands.profiles(all_of_them) == {"other": {"3g.40gb": 2}}
        for each in (path, others):
            control_plane.api.delete(each)

    def test_an_observation_without_rights_raises_cluster_unreachable(
        self, control_plane: ControlPlane, gpu_nodes: Nodes
    ) -> None:
        here = KubernetesStage(control_plane, gpu_nodes, "obeys")
        nobody = Transport(lambda: control_plane.kubeconfig("nobody"))
        with pytest.raises(ClusterUnreachable, match="cannot"):
            MigManagerPartitioner(transport_of=lambda cluster: nobody).observe(here.machine, now=here.now)


@pytest.fixture
def sim(db: None) -> Iterator[Simulation]:
    with simulate(datetime.now(UTC)) as made:
        yield made


def test_a_node_of_a_real_control_plane_is_repartitioned_for_a_queued_lease(
    sim: Simulation, control_plane: ControlPlane, gpu_nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    hands = real_partitioner(control_plane)
    monkeypatch.setattr(node_partitioners, "_load_partitioner", lambda path: hands)
    (node,) = create_fixed_nodes()
    kestrel = create_tenant("Kestrel")
    waiting = sim.request_lease(kestrel, offering("3g.40gb"), quantity=2)
    sim.run(180)
    found = publish_layouts(control_plane, node.name, {"1g.10gb": 7, "3g.40gb": 2})
    change = approve_repartition(node, sim)
    control_plane.api.delete(found)
    name = real_node(gpu_nodes, "wedges-once", change.layouts)
    Node.objects.update(name=name)
    Cluster.objects.update(provisioner="kubernetes")
    driver, began = Driver(sim, change), time.monotonic()
    while driver.step is not RepartitionStep.DONE:
        # Time is ours: minutes of waiting pass at once, and the node gets what it really needs.
        driver.on(30 if driver.step is RepartitionStep.REPARTITIONING else 5)
        time.sleep(0.25 if driver.step in (RepartitionStep.REPARTITIONING, RepartitionStep.RETRYING) else 0)
        assert time.monotonic() - began < 60, f"still {driver.change.step}: {driver.change.why}"
    assert "retrying" in driver.path
    node_now = control_plane.api.get(f"/api/v1/nodes/{name}")
    assert not any("repartition" in taint["key"] for taint in node_now["spec"].get("taints", []))
    assert node_now["status"]["allocatable"]["nvidia.com/mig-3g.40gb"] == "2"
    assert reload_lease(waiting).state in ("queued", "provisioning")
