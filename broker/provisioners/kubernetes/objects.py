"""What we read of Kubernetes' objects, and nothing more: a pod takes 5 µs to decode, not a millisecond.

What is absent reads as empty: the server leaves empty fields out. Unknown fields are skipped, so a newer server
changes nothing.
"""

from datetime import datetime
from typing import Any, TypeVar

import msgspec

from broker.provisioners.kubernetes.quantities import used_up

T = TypeVar("T")
Raw = msgspec.Raw


class Struct(msgspec.Struct, rename="camel", gc=False, kw_only=True, omit_defaults=True):
    """A piece of an object as it comes from the server."""


class OwnerReference(Struct):
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class Marks(Struct):
    """As much of an object's metadata as is read of thousands."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = {}
    finalizers: list[str] = []
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None  # 0: gone, but for those who hold it


class Meta(Marks):
    generation: int = 0
    annotations: dict[str, str] = {}
    owner_references: list[OwnerReference] = []


class Told(Struct):
    """What carries a program's own words; a NUL in them, which a pod may well write, no row of ours could hold."""

    message: str = ""

    def __post_init__(self) -> None:
        if "\0" in self.message:
            self.message = self.message.replace("\0", "")


class Waiting(Told):
    reason: str = ""


class Running(Struct):
    started_at: datetime | None = None


class Terminated(Told):
    exit_code: int = 0
    reason: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None


class ContainerState(Struct):
    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(Struct):
    name: str = ""
    image: str = ""
    ready: bool = False
    restart_count: int = 0
    state: ContainerState = msgspec.field(default_factory=ContainerState)
    last_state: ContainerState = msgspec.field(default_factory=ContainerState)


class Condition(Told):
    type: str = ""
    status: str = ""
    reason: str = ""
    last_transition_time: datetime | None = None
    last_heartbeat_time: datetime | None = None

    @property
    def holds(self) -> bool:
        return self.status == "True"


class PodSpec(Struct):
    node_name: str = ""
    restart_policy: str = ""


class PodStatus(Told):
    phase: str = ""
    reason: str = ""
    start_time: datetime | None = None
    conditions: list[Condition] = []
    container_statuses: list[ContainerStatus] = []


class Pod(Struct):
    metadata: Marks
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)

    def condition(self, kind: str) -> Condition | None:
        """Return the condition of this kind, or None where the cluster has said nothing of it."""
        return next((each for each in self.status.conditions if each.type == kind), None)


class Taint(Struct):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: datetime | None = None


class NodeSpec(Struct):
    unschedulable: bool = False
    taints: list[Taint] = []


class NodeInfo(Struct):
    kubelet_version: str = ""


class NodeStatus(Struct):
    capacity: dict[str, str] = {}
    allocatable: dict[str, str] = {}
    conditions: list[Condition] = []
    node_info: NodeInfo = msgspec.field(default_factory=NodeInfo)


class Node(Struct):
    metadata: Meta
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)

    def condition(self, kind: str) -> Condition | None:
        """Return the condition of this kind, or None where the cluster has said nothing of it."""
        return next((each for each in self.status.conditions if each.type == kind), None)


class Lease(Struct):
    """A node's lease in `kube-node-lease`, which its kubelet renews: the last proof that the node lives."""

    class Spec(Struct):
        renew_time: datetime | None = None

    metadata: Meta
    spec: Spec = msgspec.field(default_factory=Spec)


class Attribute(Struct):
    """One thing a driver says of a device; exactly one of them is set."""

    string: str | None = None
    int_: int | None = msgspec.field(default=None, name="int")
    bool_: bool | None = msgspec.field(default=None, name="bool")
    version: str | None = None


class Amount(Struct):
    value: str = ""


class Device(Struct):
    name: str = ""
    attributes: dict[str, Attribute] = {}
    capacity: dict[str, Amount] = {}


class ResourceSlice(Struct):
    """The devices of one node, as its DRA driver publishes them."""

    class Spec(Struct):
        driver: str = ""
        node_name: str = ""
        devices: list[Device] = []

    metadata: Meta
    spec: Spec = msgspec.field(default_factory=Spec)


class Given(Struct):
    """One device that a claim holds."""

    driver: str = ""
    pool: str = ""
    device: str = ""


class GivenDevices(Struct):
    results: list[Given] = []


class Allocated(Struct):
    devices: GivenDevices = msgspec.field(default_factory=GivenDevices)


class ClaimStatus(Struct):
    allocation: Allocated | None = None


class Claim(Struct):
    """A ResourceClaim: which devices it was given, if any. In a row, `strange` names one that was not sold."""

    metadata: Marks
    status: ClaimStatus = msgspec.field(default_factory=ClaimStatus)
    strange: str = ""

    @property
    def given(self) -> list[Given]:
        return self.status.allocation.devices.results if self.status.allocation else []


class Quota(Struct):
    """A project's ceilings. How much of them is used changes with every pod: only what is used up is kept of it."""

    class Spec(Struct):
        hard: dict[str, str] = {}

    class Status(Struct):
        used: dict[str, str] = {}

    metadata: Marks
    spec: Spec = msgspec.field(default_factory=Spec)
    status: Status = msgspec.field(default_factory=Status)
    used_up: list[str] = []

    def __post_init__(self) -> None:
        if self.status.used:
            self.used_up, self.status = used_up(self.spec.hard, self.status.used), self.Status()


class Said(Struct):
    """An event: what some part of the cluster said about an object."""

    class About(Struct):
        name: str = ""

    metadata: Meta
    involved_object: About = msgspec.field(default_factory=About)
    reason: str = ""
    message: str = ""
    last_timestamp: datetime | None = None

    def is_about(self, name: str) -> bool:
        """Tell whether it is about an object of this name, or one that was made from it."""
        return self.involved_object.name == name or self.involved_object.name.startswith(f"{name}-")

    @property
    def order(self) -> str:
        return self.last_timestamp.isoformat() if self.last_timestamp else ""


class Thing(Struct):
    """Any object, as far as its metadata goes."""

    api_version: str = ""
    kind: str = ""
    metadata: Meta = msgspec.field(default_factory=Meta)


class Version(Struct):
    """How new an object is, and nothing else of it."""

    class Of(Struct):
        resource_version: str = ""

    metadata: Of


class ListMeta(Struct):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class Page(Struct):
    """One page of a list; its items wait undecoded for whoever knows their kind."""

    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[msgspec.Raw] | None = None  # some servers write null where there is none


class Event(Struct):
    """One line of a watch."""

    type: str
    object: msgspec.Raw


class StatusDetails(Struct):
    retry_after_seconds: int = 0
    causes: list[dict[str, Any]] = []


class Status(Struct):
    """The server's answer when it refuses."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: StatusDetails = msgspec.field(default_factory=StatusDetails)


def read(body: bytes | msgspec.Raw, kind: type[T]) -> T:
    """Decode one object."""
    return msgspec.json.decode(body, type=kind)


def narrow(body: bytes | msgspec.Raw, kind: type[Any]) -> msgspec.Raw:
    """Return an object again as JSON, with nothing in it but what we read of it."""
    return msgspec.Raw(msgspec.json.encode(read(body, kind)))
