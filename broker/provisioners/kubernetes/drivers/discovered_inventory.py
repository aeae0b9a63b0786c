"""Discovered inventory of a cluster: nodes, their GPUs, and their slices."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from broker.domain.geometry.gpu_models import GpuModelSpec
from broker.domain.geometry.host_resources import UNKNOWN, HostResources
from broker.domain.geometry.published_profiles import PublishedProfiles
from broker.domain.lifecycle.states import Isolation


@dataclass(frozen=True, slots=True, order=True)
class DiscoveredSlice:
    """One existing slice of a GPU."""

    start: int
    size: int
    profile: str
    resource_name: str = ""  # where its node does not use the profile's usual one
    fault: str = ""  # what its node says is wrong with it alone, such as xid=94
    lost: bool = False  # nothing can run on it: its lease is lost


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
    fault: str = ""  # what its node says is wrong with it, such as xid=79
    lost: bool = False  # nothing can run on it until it is reset: its leases are lost
    devices: tuple[str, ...] = ()  # names of its DRA devices


@dataclass(frozen=True, slots=True)
class ForeignNodeUsage:
    """What pods and claims outside the broker hold on one node."""

    amounts: Mapping[str, Fraction] = field(default_factory=dict)  # by resource name
    devices: Mapping[str, str] = field(default_factory=dict)  # DRA device name or GPU UUID -> its holder
    daemon_sets: Mapping[str, Fraction] = field(default_factory=dict)  # of it, what daemon sets and static pods request
    ordinary: Mapping[str, Fraction] = field(default_factory=dict)  # and what all other pods do


NO_FOREIGN_USAGE = ForeignNodeUsage()


@dataclass(frozen=True, slots=True)
class DiscoveredNode:
    """One discovered node with GPUs.

    `problems` say what of it cannot be sold and what to do about it.
    """

    name: str
    gpus: tuple[DiscoveredGpu, ...] = ()
    problems: tuple[str, ...] = field(default=())
    new_models: tuple[GpuModelSpec, ...] = ()  # made for GPUs that no list of models names
    incomplete: bool = False  # only part of it was reported so far: nothing is changed by it
    refusal: str = ""  # why it takes no new pods
    foreign: ForeignNodeUsage = NO_FOREIGN_USAGE
    offers_none: bool = False  # it has GPUs and offers none of them at present
    all_unhealthy: bool = False  # its device plugin runs, and reports all of them as unhealthy
    resources: HostResources = UNKNOWN  # what it has for leases
    driver: str = ""  # name of the driver that requests its slices
    resources_left: HostResources = UNKNOWN  # what other pods leave of them at present


def with_nvlink_domain(node: DiscoveredNode, fabric: str) -> DiscoveredNode:
    """Return a node whose GPUs share an NVLink domain, if one is named."""
    if not fabric:
        return node
    return replace(node, gpus=tuple(replace(gpu, fabric=fabric) for gpu in node.gpus))
