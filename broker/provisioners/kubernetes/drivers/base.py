"""Protocol of slice drivers: how pods request slices from a cluster.

Drivers are pure: no network, no clock, no Django.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from broker.domain.geometry.gpu_models import GpuModelSpec
from broker.domain.lifecycle.states import Isolation
from broker.provisioners.kubernetes.client.objects import ClusterNode, ResourceSlice
from broker.provisioners.kubernetes.drivers.discovered_inventory import DiscoveredNode
from broker.provisioners.kubernetes.render.spec import LeaseSpec, Manifest, ProjectCeilings


@dataclass(frozen=True, slots=True)
class PodSliceRequest:
    """What the pod on one node of a lease must request to get its slices."""

    limits: Mapping[str, int] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    claim: str = ""  # name of the ResourceClaim it uses
    scheduler: str = ""  # empty: the cluster's default


class UnsupportedSpec(ValueError):
    """The driver cannot provide such a slice; the message says why."""


class SliceDriver(Protocol):
    """One way of requesting slices from a cluster."""

    @property
    def name(self) -> str:
        """Return the driver's name."""

    @property
    def schedulers(self) -> tuple[str, ...]:
        """Return the schedulers that its pods may name."""

    @property
    def uses_resource_claims(self) -> bool:
        """Return whether leases hold their devices by ResourceClaims that we write."""

    @property
    def reads_resource_slices(self) -> bool:
        """Return whether it reads what nodes publish as ResourceSlices."""

    def slice_request(self, lease: LeaseSpec, node: str) -> PodSliceRequest:
        """Return what the pod on a node must request, or raise UnsupportedSpec."""

    def extra_objects(self, lease: LeaseSpec) -> list[Manifest]:
        """Return further objects its slices need, without the common labels."""

    def quota_limits(self, most: ProjectCeilings) -> dict[str, str]:
        """Return the lines of a project's ResourceQuota that count slices."""

    def cluster_objects(self) -> list[Manifest]:
        """Return the objects an administrator installs once for this driver."""

    def inventory(
        self, nodes: Sequence[ClusterNode], slices: Sequence[ResourceSlice], classes: Collection[str] | None = None
    ) -> list[DiscoveredNode]:
        """Read what the cluster can sell.

        `classes` are the names of its DeviceClasses; None: they are unknown.
        """


def claimed_ranks(driver: SliceDriver, lease: LeaseSpec) -> list[int]:
    """Return the ranks of a lease that hold their devices by a ResourceClaim of ours."""
    return [rank for rank, node in enumerate(lease.nodes) if driver.slice_request(lease, node).claim]


def mig_profile_names(models: Iterable[GpuModelSpec]) -> tuple[str, ...]:
    """Return the name of every MIG profile that any of these models can have."""
    return tuple(sorted({each.name for model in models for each in model.profiles_with(Isolation.HARDWARE)}))
