"""What every way of handing out slices promises. Drivers are pure: no network, no clock, no Django."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from broker.domain.gpu_models import GpuModelSpec
from broker.domain.states import Isolation
from broker.provisioners.kubernetes.inventory import NodeFound
from broker.provisioners.kubernetes.objects import Node, ResourceSlice
from broker.provisioners.kubernetes.spec import Ceilings, LeaseSpec, Manifest


@dataclass(frozen=True, slots=True)
class Wants:
    """What the pod on one node of a lease must ask for to get its slices."""

    limits: Mapping[str, int] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    claim: str = ""  # the name of the ResourceClaim it uses
    scheduler: str = ""  # empty: the cluster's own


class Unfit(ValueError):
    """The driver cannot hand out such a slice; the sentence says why."""


class SliceDriver(Protocol):
    """Hands out slices in one way."""

    uncut: ClassVar[frozenset[Isolation]]  # as what a card is sold that is cut for each lease

    @property
    def name(self) -> str:
        """Return what it is called."""

    @property
    def schedulers(self) -> tuple[str, ...]:
        """Name the schedulers that its pods may ask for."""

    @property
    def by_claims(self) -> bool:
        """Tell whether leases hold their devices by claims that we write."""

    def wants(self, lease: LeaseSpec, node: str) -> Wants:
        """Say what the pod on a node asks for, or raise Unfit."""

    def claims(self, lease: LeaseSpec) -> list[Manifest]:
        """Return the objects beside the pods that its slices need, without their common marks."""

    def quota(self, most: Ceilings) -> dict[str, str]:
        """Return the lines of a project's ResourceQuota that count slices."""

    def cluster_objects(self) -> list[Manifest]:
        """Return what an administrator installs once for it."""

    def inventory(
        self, nodes: Sequence[Node], slices: Sequence[ResourceSlice], classes: Collection[str] | None = None
    ) -> list[NodeFound]:
        """Read what the cluster has to sell. `classes` are its DeviceClasses by name; None: nobody knows them."""


def profiles_of(models: Iterable[GpuModelSpec]) -> tuple[str, ...]:
    """Name every MIG profile that a lease could have of any of these models."""
    return tuple(sorted({each.name for model in models for each in model.sold_as(Isolation.HARDWARE)}))
