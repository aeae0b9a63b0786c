"""What a project and a lease want of a cluster, in plain values: all that rendering may depend on."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from broker.domain.states import Isolation, PriceClass
from broker.domain.workloads import Workload

Manifest = dict[str, Any]  # one object as it is sent


@dataclass(frozen=True, slots=True)
class Ceilings:
    """The most a project may hold in the cluster: a third wall behind the broker's quotas, so wide by default."""

    cards: int = 512
    slices: int = 512  # of each profile
    pods: int = 1024
    jobs: int = 1024
    cpu: int = 4096
    memory_gib: int = 32768
    storage_gib: int = 102400


@dataclass(frozen=True, slots=True)
class ProjectSpec:
    """One project of one tenant; the slug is the one its namespace was made with, for names never change."""

    tenant_id: str
    project_id: str
    slug: str = ""
    most: Ceilings = field(default_factory=Ceilings)
    installation: str = ""  # of the product whose project it is


@dataclass(frozen=True, slots=True)
class SliceSpec:
    """One place: a run of units on a card of a node, both by the names the cluster knows them by."""

    node: str
    card_uuid: str
    profile: str  # "card", a MIG profile such as 1g.10gb, or a share
    start: int
    size: int
    grid: int  # units of the whole card
    card_memory_gb: int = 0
    asks: str = ""  # the resource by which its node gives it, where that is not the usual one


@dataclass(frozen=True, slots=True)
class OfferingSpec:
    """What was sold, and what of the machine comes with a whole card; a slice brings its part of it."""

    gpu_model: str
    profile: str
    isolation: Isolation
    price_class: PriceClass
    cpu_milli: int = 12_000  # eight cards leave a machine of 128 a quarter for itself
    memory_mib: int = 98_304
    scratch_mib: int = 204_800


@dataclass(frozen=True, slots=True)
class VolumeSpec:
    """Storage that outlives the lease."""

    volume_id: str
    size_gib: int
    path: str
    storage_class: str = ""  # empty: the cluster's default
    shared: bool = False  # pods of several nodes write to it


@dataclass(frozen=True, slots=True)
class RouteSpec:
    """How a cluster lets people in: `ingress` by class name, or `gateway` by its namespace and name."""

    kind: str
    name: str
    domain: str  # each lease gets a name below it
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
    metered: bool = True  # a pod that ended stays until somebody who knows of its end lets it go

    @property
    def nodes(self) -> tuple[str, ...]:
        """Name its nodes in order; the place of a node in it is the rank of its pod."""
        return tuple(sorted({each.node for each in self.slices}))

    def slices_on(self, node: str) -> tuple[SliceSpec, ...]:
        here = (each for each in self.slices if each.node == node)
        return tuple(sorted(here, key=lambda each: (each.card_uuid, each.start)))
