"""A cluster at one moment, as far as it let us look. What could not be read says why, and checks say unknown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec

from broker.provisioners.kubernetes.inventory import NodeFound
from broker.provisioners.kubernetes.objects import Meta, Node, ResourceSlice, Struct
from broker.provisioners.kubernetes.render.access import Right

T = TypeVar("T")
Thing = Mapping[str, Any]  # an object of which a check reads a field or two


@dataclass(frozen=True, slots=True)
class Unseen:
    """Stands where something could not be read."""

    why: str


class NotSeen(Exception):
    """A check asked for what could not be read."""


def seen(part: T | Unseen) -> T:
    """Return a part of a snapshot, or raise NotSeen."""
    if isinstance(part, Unseen):
        raise NotSeen(part.why)
    return part


class Version(Struct):
    git_version: str = ""


class Resources(Struct):
    limits: dict[str, str] = {}


class AskingContainer(Struct):
    resources: Resources = msgspec.field(default_factory=Resources)


class AskingSpec(Struct):
    node_name: str = ""
    host_network: bool = False
    containers: list[AskingContainer] = []


class AskingPod(Struct):
    """A pod, as far as what it asks for and where it is."""

    class Status(Struct):
        phase: str = ""

    metadata: Meta
    spec: AskingSpec = msgspec.field(default_factory=AskingSpec)
    status: Status = msgspec.field(default_factory=Status)

    @property
    def wants_cards(self) -> bool:
        return any(
            name.startswith("nvidia.com/") for each in self.spec.containers for name in each.resources.limits
        )


@dataclass(frozen=True, slots=True)
class Credential:
    """How a kubeconfig signs in, and until when; None: it says no end."""

    kind: str
    ends: datetime | None = None


NOT_ASKED = Unseen("not looked at")


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """Everything the checks may ask about."""

    driver: str  # the name of the driver it is, or will be, registered with
    now: datetime
    credential: Credential
    version: Version | Unseen = NOT_ASKED
    skew: timedelta | Unseen = NOT_ASKED  # how far its clock is ahead of ours
    round_trip: timedelta | Unseen = NOT_ASKED
    door: str = ""  # how people come in, as it was registered
    entrances: tuple[str, ...] = ()  # and from which namespaces
    uid: str | Unseen = NOT_ASKED  # of kube-system: the cluster's own
    known_uid: str = ""  # as it was when the cluster was registered
    groups: frozenset[str] | Unseen = NOT_ASKED  # "resource.k8s.io/v1" and its like
    rights: Mapping[Right, bool] | Unseen = NOT_ASKED
    namespaces: Sequence[Thing] | Unseen = NOT_ASKED
    nodes: Sequence[Node] | Unseen = NOT_ASKED
    heartbeats: Mapping[str, datetime] | Unseen = NOT_ASKED
    found: Sequence[NodeFound] | Unseen = NOT_ASKED  # what the driver would sell
    slices: Sequence[ResourceSlice] | Unseen = NOT_ASKED
    unpublished: Mapping[str, Sequence[str]] = field(
        default_factory=dict
    )  # what a node's cards could be cut into though they do not publish it
    pods: Sequence[AskingPod] | Unseen = NOT_ASKED  # that ask for cards
    installed: Mapping[str, bool | Unseen | None] = field(
        default_factory=dict
    )  # current, outdated, or not there
    device_classes: Sequence[Thing] | Unseen = NOT_ASKED
    cluster_policies: Sequence[Thing] | Unseen = NOT_ASKED
    gpu_clusters: Sequence[Thing] | Unseen = NOT_ASKED
    daemon_sets: Sequence[Thing] | Unseen = NOT_ASKED
    config_maps: Sequence[Thing] | Unseen = NOT_ASKED  # of NVIDIA's operator
    storage_classes: Sequence[Thing] | Unseen = NOT_ASKED
    ingress_classes: Sequence[Thing] | Unseen = NOT_ASKED
    webhooks: Sequence[Thing] | Unseen = NOT_ASKED  # that change what is created
    quotas: Sequence[Thing] | Unseen = NOT_ASKED  # of ours
    network: bool | Unseen = NOT_ASKED  # pods tried, and the one that a policy closes was out of reach
    pod_security: bool | Unseen = NOT_ASKED  # it refuses what cannot be, so it is at work
    policies_refuse: bool | Unseen = NOT_ASKED  # a Service that our policies forbid was refused
    # Orders that there are objects of, and since when some of it is gone but for our holding it.
    ours: Mapping[str, datetime | None] | Unseen = NOT_ASKED
    accounted: frozenset[str] | None = None  # orders that our books know; None: no books at hand

    def blind(self) -> list[str]:
        """Name the parts that could not be read."""
        return [each.name for each in fields(self) if isinstance(getattr(self, each.name), Unseen)]
