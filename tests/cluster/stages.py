"""Each provisioner with its environment, waits and faults."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Protocol

from broker.models import Gpu, GpuHealth, Node, NodeState
from broker.provisioners.base import (
    Observation,
    ObservedState,
    Provisioner,
    ProvisionSlice,
    ProvisionSpec,
    spec_name,
)
from broker.provisioners.kubernetes.client.transport import Transport
from broker.provisioners.kubernetes.cluster_connection import ClusterConnection
from broker.provisioners.kubernetes.drivers.device_plugin import DevicePluginDriver
from broker.provisioners.kubernetes.provisioner import KubernetesProvisioner
from broker.provisioners.simulated import SimulatedProvisioner
from tests.broker.domain.fleet import MODELS
from tests.cluster.installed import close, install, some_id
from tests.controlplane.nodes import GpuNode, Nodes
from tests.controlplane.plane import ControlPlane
from tests.simulation import MODEL, NOW, create_gpus

PLUGIN = DevicePluginDriver(MODELS)


class Stage(Protocol):
    """A provisioner with its environment."""

    provisioner: Provisioner
    slow_image: str
    refused_image: str
    tolerance: timedelta  # how far its last sign of life may lie before the moment it was lost
    lost_at: datetime

    @property
    def now(self) -> datetime: ...
    def order(self, generation: int = 1, *, image: str = "") -> ProvisionSpec: ...
    def wait(self, seconds: float) -> None: ...
    def lose_node(self) -> None: ...
    def find_node(self) -> None: ...
    def names(self) -> list[str]: ...


@dataclass
class SimulatedStage:
    """The simulated fleet, in which no real time passes."""

    provisioner: Provisioner = field(default_factory=SimulatedProvisioner)
    now: datetime = NOW
    slow_image: str = "slow/image"
    refused_image: str = "refuse/nothing:1"
    tolerance: timedelta = timedelta()
    lost_at: datetime = NOW

    def __post_init__(self) -> None:
        create_gpus(2)
        self.lease_id = some_id("lse")

    def order(self, generation: int = 1, *, image: str = "") -> ProvisionSpec:
        gpu = Gpu.objects.select_related("node").order_by("index")[0]
        place = ProvisionSlice(gpu.node_id, gpu.pk, "1g.10gb", 0, 1)
        name = spec_name(self.lease_id, generation)
        return ProvisionSpec(name, self.lease_id, generation, self.now, image, "", (place,))

    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def lose_node(self) -> None:
        Node.objects.update(state=NodeState.LOST, state_since=self.now)
        self.lost_at = self.now

    def find_node(self) -> None:
        Node.objects.update(state=NodeState.READY, state_since=self.now)

    def break_gpu(self) -> None:
        fault = {"health": GpuHealth.UNHEALTHY, "health_reason": "XID 79", "health_since": self.now}
        Gpu.objects.filter(index=0).update(**fault, lost_since=self.now)

    def names(self) -> list[str]:
        return self.provisioner.names()


class KubernetesStage:
    """A real control plane, with short waits for most things."""

    slow_image, refused_image = "registry.example/acts:pull-6s", "registry.example/acts:never-pulls"
    tolerance = timedelta(seconds=10)
    nap_s = 0.1

    def __init__(self, plane: ControlPlane, nodes: Nodes) -> None:
        install(plane.api, PLUGIN)
        self.plane, self.nodes, self.node = plane, nodes, nodes.add(GpuNode(gpus=2))
        self.transport = Transport(lambda: plane.kubeconfig("admin", "system:masters"))
        self.provisioner: Provisioner = KubernetesProvisioner("clu_test", ClusterConnection(self.transport, PLUGIN))
        self.lease_id, self.project_id = some_id("lse"), some_id("prj")
        self.skew, self.lost_at = timedelta(), datetime.now(UTC)

    @property
    def now(self) -> datetime:
        return datetime.now(UTC) + self.skew

    def order(self, generation: int = 1, *, image: str = "") -> ProvisionSpec:
        place = ProvisionSlice("nod", "gpu", "whole-gpu", 0, 8, host=self.node, uuid="GPU-1", grid=8, memory_gb=80)
        return ProvisionSpec(
            name=spec_name(self.lease_id, generation),
            lease_id=self.lease_id,
            generation=generation,
            placed_at=self.now,
            image=image or "registry.example/acts:hang-1s",
            command="",
            slices=(place,),
            tenant_id="ten_" + "0" * 26,
            project_id=self.project_id,
            gpu_model=MODEL,
            profile="whole-gpu",
            isolation="device",
            price_class="on_demand",
            paid_until=self.now + timedelta(hours=1),
        )

    def wait(self, seconds: float) -> None:
        time.sleep(min(seconds, self.nap_s))
        if seconds >= 2:
            self.skew += timedelta(seconds=seconds - self.nap_s)

    def lose_node(self) -> None:
        self.lost_at = datetime.now(UTC)
        self.nodes.power(self.node, on=False)
        self.nodes.until(self.node, "Unknown")

    def find_node(self) -> None:
        self.nodes.power(self.node, on=True)
        self.nodes.until(self.node, "True")

    def names(self) -> list[str]:
        mine = spec_name(self.lease_id, 1)[:-1]
        return [name for name in self.provisioner.names() if name.startswith(mine)]

    def clear(self) -> None:
        """Delete what the test created; its nodes are removed by their fixture."""
        close(self.plane.api, f"gpubroker.dev/project={self.project_id}")


def until(stage: Stage, look: Callable[[], Observation], wanted: ObservedState, *, seconds: int = 120) -> Observation:
    """Observe until the provisioner reports this state."""
    began, end = stage.now, time.monotonic() + 150
    while True:
        seen = look()
        if seen.seen is wanted:
            return seen
        assert seen.again_in_s > 0
        stage.wait(min(seen.again_in_s, 5.0))
        assert stage.now < began + timedelta(seconds=seconds), f"still {seen}"
        assert time.monotonic() < end, f"still {seen}"


def ready(stage: Stage, order: ProvisionSpec) -> None:
    until(stage, lambda: stage.provisioner.ensure(order, now=stage.now), ObservedState.READY)


def gone(stage: Stage, order: ProvisionSpec) -> None:
    until(stage, lambda: stage.provisioner.remove(order, now=stage.now), ObservedState.GONE)


def of_nobody(order: ProvisionSpec) -> ProvisionSpec:
    """Return the same order for an unknown lease."""
    return replace(order, lease_id=some_id("lse"))
