"""Slices as virtual GPUs of HAMi.

Manifests are compared with golden files; this driver has not yet been run against HAMi's scheduler.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import msgspec

from broker.domain.geometry.gpu_identification import (
    GpuDescription,
    UnidentifiedGpu,
    identify_gpu,
    memory_of_product_gb,
)
from broker.domain.geometry.gpu_models import GpuModelSpec
from broker.domain.geometry.product_names import comparison_key
from broker.domain.geometry.published_profiles import PublishedProfiles
from broker.domain.lifecycle.states import Isolation
from broker.provisioners.kubernetes.client.objects import ClusterNode, ResourceSlice
from broker.provisioners.kubernetes.drivers import gfd
from broker.provisioners.kubernetes.drivers.base import PodSliceRequest, UnsupportedSpec
from broker.provisioners.kubernetes.drivers.discovered_inventory import (
    DiscoveredGpu,
    DiscoveredNode,
    with_nvlink_domain,
)
from broker.provisioners.kubernetes.drivers.unsupported_devices import other_gpu_manager, unsupported_nodes
from broker.provisioners.kubernetes.render.spec import LeaseSpec, Manifest, ProjectCeilings, SliceSpec

SCHEDULER = "hami-scheduler"
REGISTER_ANNOTATION = "hami.io/node-nvidia-register"
MEBIBYTES = 1024
WHOLE_PERCENT = 100
TEXT_FIELDS, MODE_FIELD = 7, 8
HANDSHAKES = ("hami.io/node-handshake", "hami.io/node-handshake-nvidia")
REMOVED = (
    "HAMi's scheduler has removed this node's GPUs, because its device plugin does not answer; check HAMi's device"
    " plugin on this node."
)
SOLD_MODES = ("", "hami-core")  # how HAMi shares a GPU; its pods ask for hami-core
OTHER_MODE = (
    "HAMi shares it in mode {mode}, and leases need hami-core; change its operating mode in HAMi's device config"
)
NOTHING_OFFERED = PublishedProfiles(())
NOTHING_REGISTERED = "HAMi registered no GPU here; check its device plugin on this node"


class HamiGpu(msgspec.Struct, frozen=True):
    """One GPU as HAMi's device plugin records it on its node."""

    id: str
    type: str = ""
    devmem: int = 0  # MiB
    health: bool = True
    numa: int | None = None  # negative: unknown
    mode: str = ""


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

    @property
    def reads_resource_slices(self) -> bool:
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
        described = [self._node(node) for node in nodes if _is_gpu_node(node)]
        return [*described, *unsupported_nodes(nodes, {node.name for node in described})]

    def _node(self, node: ClusterNode) -> DiscoveredNode:
        found, new = registered_gpus(node), dict[str, GpuModelSpec]()
        gpus, problems = [], []
        for index, gpu in enumerate(found):
            try:
                model = identify_gpu(self._describe(node, gpu), self.models)
            except UnidentifiedGpu as unidentified:
                problems.append(f"GPU {gpu.id}: {unidentified}")
                continue
            if model not in self.models:
                new[model.name] = model
            below = "" if gpu.numa is None or gpu.numa < 0 else str(gpu.numa)
            found_gpu = DiscoveredGpu(index, gpu.id, model.name, Isolation.SOFT, (), gpu.health, numa=below)
            if gpu.mode not in SOLD_MODES:  # what leases hold of it continues
                problems.append(f"GPU {gpu.id}: {OTHER_MODE.format(mode=gpu.mode)}")
                found_gpu = replace(found_gpu, published=NOTHING_OFFERED)
            # HAMi's plugin takes only XIDs that are not the application's for a fault of the GPU.
            gpus.append(replace(found_gpu, lost=not gpu.health))
        if not found:
            problems.append(other_gpu_manager(node) or NOTHING_REGISTERED)
        refusal = REMOVED if is_removed(node) else ""
        read = DiscoveredNode(node.metadata.name, tuple(gpus), tuple(problems), tuple(new.values()), refusal=refusal)
        return with_nvlink_domain(read, gfd.nvlink_domain(node.metadata.labels))

    def _describe(self, node: ClusterNode, gpu: HamiGpu) -> GpuDescription:
        """Describe a GPU by its real memory, which memory scaling multiplies in HAMi."""
        labelled = gfd.read_gpu_labels(node.metadata.labels)
        in_labels = (
            labelled.memory_mib if labelled and comparison_key(labelled.product) == comparison_key(gpu.type) else 0
        )
        named = memory_of_product_gb(gpu.type, self.models) * MEBIBYTES
        return GpuDescription(gpu.type, in_labels or named, is_virtual=gfd.has_virtual_gpus(node.metadata.labels))


def _is_gpu_node(node: ClusterNode) -> bool:
    return REGISTER_ANNOTATION in node.metadata.annotations or gfd.read_gpu_labels(node.metadata.labels) is not None


def is_removed(node: ClusterNode) -> bool:
    """Tell whether HAMi's scheduler places nothing on a node, as its plugin has stopped."""
    return any(node.metadata.annotations.get(name, "").startswith("Deleted") for name in HANDSHAKES)


def registered_gpus(node: ClusterNode) -> list[HamiGpu]:
    """Read the GPUs recorded on a node; none without a valid annotation.

    Versions before 2.5 write `id,count,memory,cores,type,numa,health` for each GPU, each followed by a colon.
    """
    text = node.metadata.annotations.get(REGISTER_ANNOTATION, "")
    if text.lstrip().startswith("["):
        try:
            return msgspec.json.decode(text, type=list[HamiGpu])
        except (msgspec.DecodeError, msgspec.ValidationError):
            return []
    entries = [entry.split(",") for entry in text.split(":") if entry]
    if any(len(entry) < TEXT_FIELDS or not entry[2].isdigit() for entry in entries):
        return []
    return [
        HamiGpu(
            id=entry[0],
            type=entry[4],
            devmem=int(entry[2]),
            health=entry[6] == "true",
            numa=int(entry[5]) if entry[5].isdigit() else None,
            mode=entry[MODE_FIELD] if len(entry) > MODE_FIELD else "",
        )
        for entry in entries
    ]


def _share_limits(isolation: Isolation, place: SliceSpec) -> dict[str, int]:
    if isolation is Isolation.DEVICE:
        return {f"{gfd.PREFIX}gpumem-percentage": WHOLE_PERCENT, f"{gfd.PREFIX}gpucores": WHOLE_PERCENT}
    if isolation is Isolation.NONE:
        raise UnsupportedSpec("HAMi limits the memory of every share; sell it as soft, not as none")
    memory = place.gpu_memory_gb * MEBIBYTES * place.size // place.grid
    return {f"{gfd.PREFIX}gpumem": memory, f"{gfd.PREFIX}gpucores": WHOLE_PERCENT * place.size // place.grid}
