"""Discovered inventory of a cluster: nodes, their GPUs, and their slices."""

from dataclasses import dataclass, field, replace

from broker.domain.geometry.published_profiles import PublishedProfiles
from broker.domain.lifecycle.states import Isolation


@dataclass(frozen=True, slots=True, order=True)
class DiscoveredSlice:
    """One existing slice of a GPU."""

    start: int
    size: int
    profile: str


@dataclass(frozen=True, slots=True)
class DiscoveredGpu:
    """One discovered GPU; without a known UUID, node and index identify it."""

    index: int
    uuid: str
    model: str  # name of one of our GpuModels
    isolation: Isolation
    cuts: tuple[DiscoveredSlice, ...]  # empty: partitioned for each lease
    healthy: bool = True
    fabric: str = ""  # GPUs of a node with the same value are linked by NVLink; empty: unknown
    numa: str = ""  # GPUs of a node with the same value share a processor; empty: unknown
    published: PublishedProfiles | None = None  # for dynamically partitioned GPUs that offer less than their model
    resource_name: str = ""  # resource name for all its slices; empty: each profile's usual name


@dataclass(frozen=True, slots=True)
class DiscoveredNode:
    """One discovered node with GPUs.

    `problems` say what of it cannot be sold and what to do about it.
    """

    name: str
    gpus: tuple[DiscoveredGpu, ...] = ()
    problems: tuple[str, ...] = field(default=())


def with_nvlink_domain(node: DiscoveredNode, fabric: str) -> DiscoveredNode:
    """Return a node whose GPUs share an NVLink domain, if one is named."""
    if not fabric:
        return node
    return replace(node, gpus=tuple(replace(gpu, fabric=fabric) for gpu in node.gpus))
