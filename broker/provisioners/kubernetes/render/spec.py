"""What a project and a lease require of a cluster, as plain values.

Rendering depends on nothing else.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from broker.domain.geometry.host_resources import DEFAULT_OF_A_GPU, HostResources
from broker.domain.lifecycle.states import Isolation, PriceClass
from broker.domain.workloads.templates import Workload
from broker.provisioners.kubernetes.tolerations import Toleration

Manifest = dict[str, Any]  # one object as it is sent


@dataclass(frozen=True, slots=True)
class ProjectCeilings:
    """The most a project may hold in the cluster.

    A further limit behind the broker's quotas, so it is wide by default.
    """

    gpus: int = 512
    slices: int = 512  # of each profile
    pods: int = 1024
    jobs: int = 1024
    cpu: int = 4096
    memory_gib: int = 32768
    storage_gib: int = 102400


@dataclass(frozen=True, slots=True)
class ProjectSpec:
    """One project of one tenant.

    The slug is the one its namespace was created with, for names never change.
    """

    tenant_id: str
    project_id: str
    slug: str = ""
    ceilings: ProjectCeilings = field(default_factory=ProjectCeilings)
    installation: str = ""  # the installation whose project it is


@dataclass(frozen=True, slots=True)
class SliceSpec:
    """A run of memory slices on a GPU, named as the cluster does."""

    node: str
    gpu_uuid: str
    profile: str  # "whole-gpu", a MIG profile such as 1g.10gb, or a share
    start: int
    size: int
    grid: int  # memory slices of the whole GPU
    gpu_memory_gb: int = 0
    resource_name: str = ""  # resource name on its node, where not the usual one
    driver: str = ""  # name of the driver that requests it; empty: its cluster's only one


@dataclass(frozen=True, slots=True)
class OfferingSpec:
    """What was sold, and the node resources that come with each slice."""

    gpu_model: str
    profile: str
    isolation: Isolation
    price_class: PriceClass
    resources: HostResources = DEFAULT_OF_A_GPU


@dataclass(frozen=True, slots=True)
class VolumeSpec:
    """Storage that outlives the lease."""

    volume_id: str
    size_gib: int
    path: str
    storage_class: str = ""  # empty: the cluster's default
    shared: bool = False  # pods on several nodes write to it


@dataclass(frozen=True, slots=True)
class RouteSpec:
    """How a cluster admits people: `ingress` by class, or `gateway` by namespace and name."""

    kind: str
    name: str
    domain: str  # each lease gets a host name below it
    namespace: str = "gateway"


@dataclass(frozen=True, slots=True)
class LeaseSpec:
    """One generation of a lease."""

    lease_id: str
    generation: int
    project: ProjectSpec
    offering: OfferingSpec
    workload: Workload
    slices: tuple[SliceSpec, ...]
    placed_at: datetime
    paid_until: datetime
    access_token: str = ""
    volumes: tuple[VolumeSpec, ...] = ()
    route: RouteSpec | None = None
    tolerations: tuple[Toleration, ...] = ()  # of its cluster's nodes
    pull_always: bool = True  # the registry is asked before each start
    metered: bool = True  # ended pods stay until released by whoever recorded their end

    @property
    def nodes(self) -> tuple[str, ...]:
        """Return its nodes in order; a node's position is the rank of its pod."""
        return tuple(sorted({each.node for each in self.slices}))

    def slices_on(self, node: str) -> tuple[SliceSpec, ...]:
        here = (each for each in self.slices if each.node == node)
        return tuple(sorted(here, key=lambda each: (each.gpu_uuid, each.start)))

    def driver_on(self, node: str) -> str:
        """Return the driver that requests its slices on a node, or nothing."""
        return next((each.driver for each in self.slices if each.node == node), "")

    def resources_on(self, node: str) -> HostResources:
        """Return the CPU, memory and scratch of its pod on a node."""
        return self.offering.resources.times(len(self.slices_on(node)))
