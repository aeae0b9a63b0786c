"""Snapshot of a cluster at one moment, as far as it could be read.

Parts that could not be read carry the reason, and checks that need them return unknown.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec

from broker.provisioners.kubernetes.client.objects import ApiStruct, ClusterNode, FullObjectMeta, ResourceSlice
from broker.provisioners.kubernetes.client.pod_requests import PodRequestsSpec
from broker.provisioners.kubernetes.drivers.discovered_inventory import DiscoveredNode
from broker.provisioners.kubernetes.drivers.driver_registry import CLUSTER_DRIVERS
from broker.provisioners.kubernetes.render.rbac import AccessRight
from broker.provisioners.kubernetes.tolerations import Toleration

T = TypeVar("T")
RawObject = Mapping[str, Any]  # an undecoded object of which a check reads a few fields


@dataclass(frozen=True, slots=True)
class UnreadablePart:
    """Placeholder for a part that could not be read, with the reason."""

    reason: str


class UnreadableError(Exception):
    """A check needs a part that could not be read."""


def require_readable(part: T | UnreadablePart) -> T:
    """Return a part of a snapshot, or raise UnreadableError if it could not be read."""
    if isinstance(part, UnreadablePart):
        raise UnreadableError(part.reason)
    return part


class ServerVersion(ApiStruct):
    git_version: str = ""


class PodResourcesSpec(PodRequestsSpec):
    host_network: bool = False


class PodResources(ApiStruct):
    """A pod's resource requests, node and phase."""

    class Status(ApiStruct):
        phase: str = ""

    metadata: FullObjectMeta
    spec: PodResourcesSpec = msgspec.field(default_factory=PodResourcesSpec)
    status: Status = msgspec.field(default_factory=Status)

    @property
    def wants_gpus(self) -> bool:
        return any(name.startswith("nvidia.com/") for each in self.spec.containers for name in each.resources.limits)


@dataclass(frozen=True, slots=True)
class ClusterCredentialInfo:
    """The credential type of a kubeconfig and its expiry; None: no expiry given."""

    kind: str
    expires_at: datetime | None = None


NOT_READ = UnreadablePart("not checked")


@dataclass(frozen=True, kw_only=True)
class ClusterSnapshot:
    """Everything the checks may use."""

    driver: str  # name of the driver it is, or will be, registered with
    now: datetime
    credential: ClusterCredentialInfo
    version: ServerVersion | UnreadablePart = NOT_READ
    skew: timedelta | UnreadablePart = NOT_READ  # how far its clock is ahead of ours
    round_trip: timedelta | UnreadablePart = NOT_READ
    ingress: str = ""  # the registered ingress
    allowed_namespaces: tuple[str, ...] = ()  # namespaces from which people reach leases
    tolerations: tuple[Toleration, ...] = ()  # taints that pods of leases tolerate
    uid: str | UnreadablePart = NOT_READ  # uid of kube-system, which identifies the cluster
    known_uid: str = ""  # uid when the cluster was registered
    groups: frozenset[str] | UnreadablePart = NOT_READ  # such as "resource.k8s.io/v1"
    rights: Mapping[AccessRight, bool] | UnreadablePart = NOT_READ
    namespaces: Sequence[RawObject] | UnreadablePart = NOT_READ
    nodes: Sequence[ClusterNode] | UnreadablePart = NOT_READ
    heartbeats: Mapping[str, datetime] | UnreadablePart = NOT_READ
    inventory: Sequence[DiscoveredNode] | UnreadablePart = NOT_READ  # inventory that the driver would sell
    slices: Sequence[ResourceSlice] | UnreadablePart = NOT_READ
    # By node: supported profiles that it does not publish.
    unpublished: Mapping[str, Sequence[str]] = field(default_factory=dict)
    pods: Sequence[PodResources] | UnreadablePart = NOT_READ  # that request GPUs
    # True: current; False: outdated; None: missing.
    installed: Mapping[str, bool | UnreadablePart | None] = field(default_factory=dict)
    device_classes: Sequence[RawObject] | UnreadablePart = NOT_READ
    cluster_policies: Sequence[RawObject] | UnreadablePart = NOT_READ
    gpu_clusters: Sequence[RawObject] | UnreadablePart = NOT_READ
    daemon_sets: Sequence[RawObject] | UnreadablePart = NOT_READ
    config_maps: Sequence[RawObject] | UnreadablePart = NOT_READ  # of NVIDIA's operator
    storage_classes: Sequence[RawObject] | UnreadablePart = NOT_READ
    ingress_classes: Sequence[RawObject] | UnreadablePart = NOT_READ
    webhooks: Sequence[RawObject] | UnreadablePart = NOT_READ  # mutating webhooks
    quotas: Sequence[RawObject] | UnreadablePart = NOT_READ  # created by us
    network: bool | UnreadablePart = NOT_READ  # result of the network probe: policies are enforced
    pod_security: bool | UnreadablePart = NOT_READ  # PodSecurity refuses an invalid level, so it is active
    policies_refuse: bool | UnreadablePart = NOT_READ  # a Service that our policies forbid was refused
    # Spec names with objects in the cluster, and since when one of their pods waits for release.
    ours: Mapping[str, datetime | None] | UnreadablePart = NOT_READ
    accounted: frozenset[str] | None = None  # spec names in our database; None: no database at hand

    def uses(self, driver: str) -> bool:
        """Return whether nodes of the cluster may have this driver."""
        return driver in CLUSTER_DRIVERS[self.driver]

    def unreadable_parts(self) -> list[str]:
        """Return the names of the parts that could not be read."""
        return [each.name for each in fields(self) if isinstance(getattr(self, each.name), UnreadablePart)]
