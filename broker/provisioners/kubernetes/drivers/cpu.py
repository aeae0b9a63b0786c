"""CPUs of labelled nodes without GPUs; their pods request CPU, memory and scratch only."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from broker.domain.geometry.cpu_blocks import (
    CPU_MODEL_NAME,
    UNITS_PER_BLOCK,
    blocks_of_node,
    profiles_in_block,
    units_of_node,
)
from broker.domain.geometry.gpu_models import GpuModelSpec
from broker.domain.lifecycle.states import Isolation
from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.client.objects import ClusterNode, ResourceSlice
from broker.provisioners.kubernetes.drivers.base import PodSliceRequest
from broker.provisioners.kubernetes.drivers.discovered_inventory import DiscoveredGpu, DiscoveredNode
from broker.provisioners.kubernetes.drivers.node_resources import node_resources
from broker.provisioners.kubernetes.render.spec import LeaseSpec, Manifest, ProjectCeilings

TOO_SMALL = "it is labelled {label} and has less than 2 CPUs for leases"


@dataclass(frozen=True, slots=True)
class CpuDriver:
    """Sells the CPUs of nodes that an operator has labelled for it."""

    models: tuple[GpuModelSpec, ...] = ()
    name: str = "cpu"
    schedulers: tuple[str, ...] = ()
    uncut: ClassVar[frozenset[Isolation]] = frozenset({Isolation.HARDWARE})

    @property
    def uses_resource_claims(self) -> bool:
        return False

    @property
    def reads_resource_slices(self) -> bool:
        return False

    def slice_request(self, lease: LeaseSpec, node: str) -> PodSliceRequest:
        return PodSliceRequest()

    def extra_objects(self, lease: LeaseSpec) -> list[Manifest]:
        return []

    def quota_limits(self, most: ProjectCeilings) -> dict[str, str]:
        return {}

    def cluster_objects(self) -> list[Manifest]:
        return []

    def inventory(
        self, nodes: Sequence[ClusterNode], slices: Sequence[ResourceSlice], classes: Collection[str] | None = None
    ) -> list[DiscoveredNode]:
        return [_node(node) for node in nodes]


def sells_cpus(node: ClusterNode) -> bool:
    """Return whether an operator has labelled a node so that its CPUs are sold."""
    return node.metadata.labels.get(labels.SELL_CPU) == "true"


def offer_remaining_cpus(node: DiscoveredNode) -> DiscoveredNode:
    """Return a node that offers no more units than the CPUs that other pods leave.

    Its last blocks are reduced. They stay, because leases may be on them.
    """
    units = units_of_node(node.resources_left)
    blocks = []
    for gpu in node.gpus:
        if gpu.model == CPU_MODEL_NAME:
            left = min(max(units - UNITS_PER_BLOCK * gpu.index, 0), UNITS_PER_BLOCK)
            gpu = replace(gpu, published=profiles_in_block(left))
        blocks.append(gpu)
    return replace(node, gpus=tuple(blocks))


def _node(node: ClusterNode) -> DiscoveredNode:
    name, blocks = node.metadata.name, blocks_of_node(node_resources(node))
    if not blocks:
        return DiscoveredNode(name, (), (TOO_SMALL.format(label=labels.SELL_CPU),))
    found = (
        DiscoveredGpu(
            index, f"{name}/{index}", CPU_MODEL_NAME, Isolation.HARDWARE, (), published=profiles_in_block(units)
        )
        for index, units in enumerate(blocks)
    )
    return DiscoveredNode(name, tuple(found))
