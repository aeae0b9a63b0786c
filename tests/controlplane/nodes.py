"""Simulated GPU nodes with the labels of NVIDIA's operator."""

import json
import re
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from tests.controlplane.api import Api, Object, Refused
from tests.controlplane.commands import POWERED
from tests.controlplane.kubelets import SICK
from tests.controlplane.mig_manager import CLIENTS, CONFIG, LAYOUTS, MANNERS, STATE, TAKES

GPU = "nvidia.com/gpu"


@dataclass(frozen=True)
class GpuHardware:
    """GPU properties that feature discovery reports for a node."""

    product: str = "NVIDIA-H100-80GB-HBM3"
    memory_mib: int = 81559
    family: str = "hopper"
    compute: str = "9.0"
    mig_capable: bool = True


H100 = GpuHardware()
A100 = GpuHardware("NVIDIA-A100-SXM4-80GB", 81920, "ampere", "8.0")
L40S = GpuHardware("NVIDIA-L40S", 46068, "ada-lovelace", "8.9", mig_capable=False)


@dataclass(frozen=True)
class GpuNode:
    """A node to add: its GPUs, and how they are shared."""

    gpus: int = 8
    gpu: GpuHardware = H100
    # What the node gives in MIG devices, {"1g.10gb": 14}; the GPUs that are cut no longer count as whole ones.
    mig: Mapping[str, int] = field(default_factory=dict)
    strategy: str = "mixed"  # or single: slices are given as whole GPUs, or none
    cut: int = 0  # how many of the GPUs are cut
    replicas: int = 1
    sharing: str = "none"  # or time-slicing, mps
    renamed: bool = True  # replicas are given as …/gpu.shared
    labels: Mapping[str, str] = field(default_factory=dict)
    # The mig-manager's: what each layout gives, {"all-1g.10gb": {"nvidia.com/mig-1g.10gb": 56}}, and its manners.
    layouts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    manners: str = "obeys"
    takes: str = "200ms"
    amounts: Mapping[str, str] = field(default_factory=dict)  # {"cpu": "4"}; the rest is that of a large machine

    def gives(self) -> dict[str, str]:
        """Return the extended resources that its device plugin offers."""
        suffix = ".shared" if self.replicas > 1 and self.renamed else ""
        whole = (self.gpus - self.cut) * self.replicas
        if self.strategy == "single" and self.mig:
            return {GPU + suffix: str(sum(self.mig.values()) * self.replicas)}
        slices = {f"nvidia.com/mig-{name}{suffix}": str(n * self.replicas) for name, n in self.mig.items()}
        return {GPU + suffix: str(whole), **slices}

    def discovered(self) -> dict[str, str]:
        """Return the labels of feature discovery."""
        single = next(iter(self.mig), "") if self.strategy == "single" else ""
        product = self.gpu.product + (f"-MIG-{single}" if single else "")
        product += "-SHARED" if self.replicas > 1 and not self.renamed else ""
        major, minor = self.gpu.compute.split(".")
        found = {
            "gpu.present": "true",
            "gpu.product": product,
            "gpu.count": self.gives()[GPU] if single else str(self.gpus),
            "gpu.memory": str(self.gpu.memory_mib),
            "gpu.family": self.gpu.family,
            "gpu.machine": "played-server",
            "gpu.mode": "compute",
            "gpu.compute.major": major,
            "gpu.compute.minor": minor,
            "gpu.replicas": str(self.replicas),
            "gpu.sharing-strategy": self.sharing,
            "mig.capable": str(self.gpu.mig_capable).lower(),
            "mig.strategy": self.strategy,
            "cuda.driver-version.full": "580.95.05",
            "cuda.runtime-version.full": "13.0",
            **{f"gpu.deploy.{client}": "true" for client in CLIENTS},
        }
        # With the strategy single a slice looks like a whole GPU, and has no labels of its own.
        for name, count in self.mig.items() if self.strategy != "single" else ():
            compute, memory = (int(part) for part in re.findall(r"\d+", name)[:2])
            found |= {
                f"mig-{name}.count": str(count),
                f"mig-{name}.product": f"{self.gpu.product}-MIG-{name}",
                f"mig-{name}.memory": str(memory * 1024 * 95 // 100),
                f"mig-{name}.slices.gi": str(compute),
                f"mig-{name}.slices.ci": str(compute),
                f"mig-{name}.replicas": str(self.replicas),
                f"mig-{name}.sharing-strategy": self.sharing,
            }
        return {f"nvidia.com/{label}": value for label, value in found.items()}

    def manifest(self, name: str) -> Object:
        """Return the node as its kubelet registers it."""
        room = {
            "cpu": "128",
            "memory": "1Ti",
            "pods": "250",
            "ephemeral-storage": "4Ti",
            **self.amounts,
            **self.gives(),
        }
        mig = {STATE: "success"} if self.layouts else {}
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {
                    "kubernetes.io/hostname": name,
                    "kubernetes.io/os": "linux",
                    "kubernetes.io/arch": "amd64",
                    POWERED: "true",
                    **self.discovered(),
                    **mig,
                    **self.labels,
                },
                "annotations": {
                    LAYOUTS: json.dumps(self.layouts),
                    MANNERS: self.manners,
                    TAKES: self.takes,
                },
            },
            "status": {
                "capacity": room,
                "allocatable": room,
                "nodeInfo": {
                    "architecture": "amd64",
                    "bootID": name,
                    "containerRuntimeVersion": "containerd://2.1.4",
                    "kernelVersion": "6.8.0-played",
                    "kubeProxyVersion": "",
                    "kubeletVersion": "v1.36.3",
                    "machineID": name,
                    "operatingSystem": "linux",
                    "osImage": "Played Linux",
                    "systemUUID": name,
                },
            },
        }


@dataclass(frozen=True)
class PlainNode(GpuNode):
    """A node without NVIDIA GPUs; its `labels` and `amounts` may be those of others."""

    gpus: int = 0

    def gives(self) -> dict[str, str]:
        return {}

    def discovered(self) -> dict[str, str]:
        return {}


def ready(node: Object) -> str:
    """Return a node's condition Ready: True, False or Unknown; empty before it first reports."""
    conditions = node.get("status", {}).get("conditions", [])
    return next((str(one["status"]) for one in conditions if one["type"] == "Ready"), "")


class Nodes:
    """Nodes of a test, with their faults."""

    def __init__(self, api: Api, prefix: str) -> None:
        self.api, self.prefix = api, prefix
        self.names: list[str] = []

    def add(self, node: GpuNode | None = None, *, name: str = "") -> str:
        """Add a node, wait until pods can be placed on it, and return its name."""
        name = name or f"{self.prefix}-{len(self.names)}"
        self.names.append(name)
        self.api.create((node or GpuNode()).manifest(name))
        # Its lease first: until then nobody plays it. Its taints last: until then the scheduler passes it by.
        self.api.until(f"/api/v1/nodes/{name}", _usable)
        return name

    def add_many(self, count: int, node: GpuNode | None = None, *, within: float = 120) -> list[str]:
        """Add many nodes at once, and wait until they are ready."""
        names = [f"{self.prefix}-{len(self.names) + n}" for n in range(count)]
        self.names += names
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda name: self.api.create((node or GpuNode()).manifest(name)), names))
        waiting, end = set(names), time.monotonic() + within
        while waiting and time.monotonic() < end:
            time.sleep(0.1)
            waiting -= {one["metadata"]["name"] for one in self.api.items("/api/v1/nodes") if _usable(one)}
        assert not waiting, f"not ready after {within} s: {sorted(waiting)[:5]} and {len(waiting)} in all"
        return names

    def see(self, name: str) -> Object:
        return self.api.get(f"/api/v1/nodes/{name}")

    def until(self, name: str, state: str, *, within: float = 120) -> Object:
        """Wait until the cluster considers a node Ready, or not."""
        return self.api.until(
            f"/api/v1/nodes/{name}",
            lambda seen: _usable(seen) if state == "True" else ready(seen) == state,
            within=within,
        )

    def power(self, name: str, *, on: bool) -> None:
        """Power a node off or on; the cluster notices missing heartbeats.

        Where every node is silent Kubernetes doubts itself and taints none: let a neighbour live.
        """
        self._change(name, {"metadata": {"labels": {POWERED: "true" if on else None}}})

    def sicken(self, name: str, *, sick: bool = True) -> None:
        """Let a node report itself as not ready, or ready again."""
        self._change(name, {"metadata": {"annotations": {SICK: "true" if sick else None}}})

    def give(self, name: str, **resources: int) -> None:
        """Set what the device plugin reports: give(node, **{"nvidia.com/gpu": 7})."""
        numbers = {resource: str(count) for resource, count in resources.items()}
        self._change(name, {"status": {"allocatable": numbers}}, "/status")

    def lay_out(self, name: str, layout: str) -> None:
        """Request a layout from the node's mig-manager."""
        self._change(name, {"metadata": {"labels": {CONFIG: layout}}})

    def state_of_layout(self, name: str) -> str:
        return str(self.see(name)["metadata"]["labels"].get(STATE, ""))

    def remove(self, name: str) -> None:
        """Delete a node, as an administrator does."""
        try:
            self.api.delete(f"/api/v1/nodes/{name}")
        except Refused as refused:
            if refused.status != 404:
                raise

    def clear(self) -> None:
        """Remove the test's nodes and their pods."""
        for name in self.names:
            for pod in self.api.items("/api/v1/pods", fieldSelector=f"spec.nodeName={name}"):
                _drop(self.api, pod)
            self.remove(name)

    def _change(self, name: str, body: Object, part: str = "") -> None:
        self.api.patch(f"/api/v1/nodes/{name}{part}", body)


def _usable(node: Object) -> bool:
    taints = [taint["key"] for taint in node["spec"].get("taints", [])]
    return ready(node) == "True" and not any(key.startswith("node.kubernetes.io/") for key in taints)


def _drop(api: Api, pod: Object) -> None:
    path = api.path({**pod, "apiVersion": "v1", "kind": "Pod"})
    for _ in range(3):
        try:
            api.patch(path, {"metadata": {"finalizers": None}})
            api.delete(path, {"gracePeriodSeconds": 0})
        except Refused as refused:
            if refused.status == 404:
                return
            time.sleep(0.05)
