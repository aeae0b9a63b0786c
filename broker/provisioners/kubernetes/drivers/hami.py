"""Slices as virtual GPUs of HAMi.

Manifests are compared with golden files; this driver has not yet been run against HAMi's scheduler.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar

import msgspec

from broker.domain.geometry.gpu_matching import match_gpu_model
from broker.domain.geometry.gpu_models import GpuModelSpec
from broker.domain.lifecycle.states import Isolation
from broker.provisioners.kubernetes.client.objects import ClusterNode, ResourceSlice
from broker.provisioners.kubernetes.drivers import gfd
from broker.provisioners.kubernetes.drivers.base import PodSliceRequest, UnsupportedSpec
from broker.provisioners.kubernetes.drivers.discovered_inventory import (
    DiscoveredGpu,
    DiscoveredNode,
    with_nvlink_domain,
)
from broker.provisioners.kubernetes.render.spec import LeaseSpec, Manifest, ProjectCeilings, SliceSpec

SCHEDULER = "hami-scheduler"
REGISTER_ANNOTATION = "hami.io/node-nvidia-register"
MEBIBYTES = 1024
WHOLE_PERCENT = 100


class HamiGpu(msgspec.Struct, frozen=True):
    """One GPU as HAMi's device plugin records it on its node."""

    id: str
    type: str = ""
    devmem: int = 0  # MiB
    health: bool = True
    numa: int | None = None


@dataclass(frozen=True, slots=True)
class HamiDriver:
    """Requests memory and compute of the GPUs the broker chose from HAMi's scheduler."""

    models: tuple[GpuModelSpec, ...]
    name: str = "hami"
    schedulers: tuple[str, ...] = (SCHEDULER,)
    uncut: ClassVar[frozenset[Isolation]] = frozenset({Isolation.DEVICE, Isolation.HARDWARE, Isolation.SOFT})

    @property
    def uses_resource_claims(self) -> bool:
        return False

    def slice_request(self, lease: LeaseSpec, node: str) -> PodSliceRequest:
        places = lease.slices_on(node)
        gpus = sorted({place.gpu_uuid for place in places})
        if len(gpus) != len(places):
            raise UnsupportedSpec("HAMi gives a pod one share of a GPU; request one larger share, or more GPUs")
        limits = {f"{gfd.PREFIX}gpu": len(places), **_share_limits(lease.offering.isolation, places[0])}
        mode = "mig" if lease.offering.isolation is Isolation.HARDWARE else "hami-core"
        annotations = {f"{gfd.PREFIX}use-gpuuuid": ",".join(gpus), f"{gfd.PREFIX}vgpu-mode": mode}
        return PodSliceRequest(limits=dict(sorted(limits.items())), annotations=annotations, scheduler=SCHEDULER)

    def extra_objects(self, lease: LeaseSpec) -> list[Manifest]:
        return []

    def quota_limits(self, most: ProjectCeilings) -> dict[str, str]:
        return {f"requests.{gfd.PREFIX}gpu": str(most.slices)}

    def cluster_objects(self) -> list[Manifest]:
        return []

    def inventory(
        self, nodes: Sequence[ClusterNode], slices: Sequence[ResourceSlice], classes: Collection[str] | None = None
    ) -> list[DiscoveredNode]:
        return [self._node(node) for node in nodes if gfd.read_gpu_labels(node.metadata.labels)]

    def _node(self, node: ClusterNode) -> DiscoveredNode:
        found = registered_gpus(node)
        gpus, problems = [], []
        for index, gpu in enumerate(found):
            product = gpu.type.removeprefix("NVIDIA-").removeprefix("NVIDIA ").replace(" ", "-")
            model = match_gpu_model(product, gpu.devmem, self.models)
            if model is None:
                problems.append(
                    f"GPU {gpu.id} is a {product}, an unknown model; run manage.py read_gpus on the node to add it"
                )
                continue
            below = "" if gpu.numa is None else str(gpu.numa)
            gpus.append(DiscoveredGpu(index, gpu.id, model.name, Isolation.SOFT, (), gpu.health, numa=below))
        if not found:
            problems.append("HAMi registered no GPU here; check its device plugin on this node")
        read = DiscoveredNode(node.metadata.name, tuple(gpus), tuple(problems))
        return with_nvlink_domain(read, gfd.nvlink_domain(node.metadata.labels))


def registered_gpus(node: ClusterNode) -> list[HamiGpu]:
    """Read the GPUs recorded on a node; none if the annotation is missing or malformed."""
    try:
        return msgspec.json.decode(node.metadata.annotations.get(REGISTER_ANNOTATION, "[]"), type=list[HamiGpu])
    except (msgspec.DecodeError, msgspec.ValidationError):
        return []


def _share_limits(isolation: Isolation, place: SliceSpec) -> dict[str, int]:
    if isolation is Isolation.DEVICE:
        return {f"{gfd.PREFIX}gpumem-percentage": WHOLE_PERCENT, f"{gfd.PREFIX}gpucores": WHOLE_PERCENT}
    if isolation is Isolation.NONE:
        raise UnsupportedSpec("HAMi limits the memory of every share; sell it as soft, not as none")
    memory = place.gpu_memory_gb * MEBIBYTES * place.size // place.grid
    return {f"{gfd.PREFIX}gpumem": memory, f"{gfd.PREFIX}gpucores": WHOLE_PERCENT * place.size // place.grid}
