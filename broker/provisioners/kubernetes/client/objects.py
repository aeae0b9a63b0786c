"""The parts of Kubernetes objects that we read; a pod decodes in 5 µs.

The official client takes a millisecond. Absent fields read as empty, since the server leaves out empty
fields. Unknown fields are skipped, so a newer server changes nothing.
"""

from datetime import datetime
from typing import Any, TypeVar

import msgspec

from broker.provisioners.kubernetes.client.quantities import exhausted_names

T = TypeVar("T")
Raw = msgspec.Raw


class ApiStruct(msgspec.Struct, rename="camel", gc=False, kw_only=True, omit_defaults=True):
    """Part of an object as the server sends it."""


class OwnerReference(ApiStruct):
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(ApiStruct):
    """The metadata we read from thousands of objects."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = {}
    finalizers: list[str] = []
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None  # 0: gone, only finalizers hold it


class FullObjectMeta(ObjectMeta):
    generation: int = 0
    annotations: dict[str, str] = {}
    owner_references: list[OwnerReference] = []


class MessageStruct(ApiStruct):
    """Base of structs with a message written by a program.

    A NUL in it, which a pod may well write, is removed: the database cannot store it.
    """

    message: str = ""

    def __post_init__(self) -> None:
        if "\0" in self.message:
            self.message = self.message.replace("\0", "")


class ContainerWaiting(MessageStruct):
    reason: str = ""


class ContainerRunning(ApiStruct):
    started_at: datetime | None = None


class ContainerTerminated(MessageStruct):
    exit_code: int = 0
    reason: str = ""
    started_at: datetime | None = None  # None: it never started; the runtime writes the epoch then
    finished_at: datetime | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.started_at and self.started_at.timestamp() == 0:
            self.started_at = None


class ContainerState(ApiStruct):
    waiting: ContainerWaiting | None = None
    running: ContainerRunning | None = None
    terminated: ContainerTerminated | None = None


class DeviceHealth(ApiStruct):
    """Health of one allocated device, as its kubelet reports it (KEP-4680)."""

    resource_id: str = msgspec.field(default="", name="resourceID")
    health: str = ""


class AllocatedResource(ApiStruct):
    name: str = ""
    resources: list[DeviceHealth] = []


class ContainerStatus(ApiStruct):
    name: str = ""
    image: str = ""
    ready: bool = False
    restart_count: int = 0
    state: ContainerState = msgspec.field(default_factory=ContainerState)
    last_state: ContainerState = msgspec.field(default_factory=ContainerState)
    allocated_resources_status: list[AllocatedResource] = []


class ObjectCondition(MessageStruct):
    type: str = ""
    status: str = ""
    reason: str = ""
    last_transition_time: datetime | None = None
    last_heartbeat_time: datetime | None = None

    @property
    def holds(self) -> bool:
        return self.status == "True"


class SchedulingGate(ApiStruct):
    name: str = ""


class PodSpec(ApiStruct):
    node_name: str = ""
    restart_policy: str = ""
    scheduling_gates: list[SchedulingGate] = []


class PodStatus(MessageStruct):
    phase: str = ""
    reason: str = ""
    start_time: datetime | None = None
    conditions: list[ObjectCondition] = []
    container_statuses: list[ContainerStatus] = []
    init_container_statuses: list[ContainerStatus] = []


class ObservedPod(ApiStruct):
    metadata: ObjectMeta
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)

    def condition(self, kind: str) -> ObjectCondition | None:
        """Return the condition of this kind, or None if the cluster reported none."""
        return next((each for each in self.status.conditions if each.type == kind), None)


class Taint(ApiStruct):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: datetime | None = None


class NodeSpec(ApiStruct):
    unschedulable: bool = False
    taints: list[Taint] = []


class NodeInfo(ApiStruct):
    kubelet_version: str = ""


class NodeStatus(ApiStruct):
    capacity: dict[str, str] = {}
    allocatable: dict[str, str] = {}
    conditions: list[ObjectCondition] = []
    node_info: NodeInfo = msgspec.field(default_factory=NodeInfo)


class ClusterNode(ApiStruct):
    metadata: FullObjectMeta
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)

    def condition(self, kind: str) -> ObjectCondition | None:
        """Return the condition of this kind, or None if the cluster reported none."""
        return next((each for each in self.status.conditions if each.type == kind), None)


class NodeLease(ApiStruct):
    """A node's lease in `kube-node-lease`, renewed by its kubelet as a heartbeat."""

    class LeaseSpec(ApiStruct):
        renew_time: datetime | None = None

    metadata: FullObjectMeta
    spec: LeaseSpec = msgspec.field(default_factory=LeaseSpec)


class DeviceAttribute(ApiStruct):
    """One attribute of a device; exactly one field is set."""

    string: str | None = None
    int_: int | None = msgspec.field(default=None, name="int")
    bool_: bool | None = msgspec.field(default=None, name="bool")
    version: str | None = None


class DeviceCapacity(ApiStruct):
    value: str = ""


class CounterConsumption(ApiStruct):
    """What a device takes of a counter set, which other devices of its GPU share."""

    counter_set: str = ""
    counters: dict[str, DeviceCapacity] = {}


class DeviceFields(ApiStruct):
    """The fields of a device as v1beta1 nests them."""

    attributes: dict[str, DeviceAttribute] = {}
    capacity: dict[str, DeviceCapacity] = {}
    consumes_counters: list[CounterConsumption] = []
    taints: list[Taint] = []
    allow_multiple_allocations: bool = False


class Device(DeviceFields):
    name: str = ""
    basic: DeviceFields | None = None

    def __post_init__(self) -> None:
        if self.basic is not None:
            self.attributes, self.capacity = self.basic.attributes, self.basic.capacity
            self.consumes_counters, self.taints = self.basic.consumes_counters, self.basic.taints
            self.allow_multiple_allocations = self.basic.allow_multiple_allocations


class DevicePool(ApiStruct):
    """The pool a slice belongs to; only slices of the newest generation count."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSlice(ApiStruct):
    """The devices of one node, as its DRA driver publishes them."""

    class SliceSpec(ApiStruct):
        driver: str = ""
        node_name: str = ""
        pool: DevicePool = msgspec.field(default_factory=DevicePool)
        devices: list[Device] = []

    metadata: FullObjectMeta
    spec: SliceSpec = msgspec.field(default_factory=SliceSpec)


class AllocatedDevice(ApiStruct):
    """One device allocated to a claim."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool = False  # it monitors the device, which others may hold


class AllocatedDevices(ApiStruct):
    results: list[AllocatedDevice] = []


class ClaimAllocation(ApiStruct):
    devices: AllocatedDevices = msgspec.field(default_factory=AllocatedDevices)


class ClaimStatus(ApiStruct):
    allocation: ClaimAllocation | None = None


class ResourceClaim(ApiStruct):
    """A ResourceClaim with the devices allocated to it, if any.

    In a database row, `strange` names an allocated device that was not sold.
    """

    metadata: ObjectMeta
    status: ClaimStatus = msgspec.field(default_factory=ClaimStatus)
    strange: str = ""

    @property
    def devices(self) -> list[AllocatedDevice]:
        return self.status.allocation.devices.results if self.status.allocation else []


class ObservedQuota(ApiStruct):
    """A project's ResourceQuota, reduced to the resources that are used up.

    The amounts in use change with every pod, so they are not stored.
    """

    class QuotaSpec(ApiStruct):
        hard: dict[str, str] = {}

    class Status(ApiStruct):
        used: dict[str, str] = {}

    metadata: ObjectMeta
    spec: QuotaSpec = msgspec.field(default_factory=QuotaSpec)
    status: Status = msgspec.field(default_factory=Status)
    used_up: list[str] = []

    def __post_init__(self) -> None:
        if self.status.used:
            self.used_up, self.status = exhausted_names(self.spec.hard, self.status.used), self.Status()


class UserInfo(ApiStruct):
    username: str = ""


class ReviewStatus(ApiStruct):
    user_info: UserInfo = msgspec.field(default_factory=UserInfo)


class SelfSubjectReview(ApiStruct):
    """Who the server takes us for."""

    status: ReviewStatus = msgspec.field(default_factory=ReviewStatus)


class ClusterEvent(ApiStruct):
    """A Kubernetes event about an object."""

    class About(ApiStruct):
        name: str = ""
        uid: str = ""

    metadata: FullObjectMeta
    involved_object: About = msgspec.field(default_factory=About)
    type: str = ""  # Normal or Warning
    reason: str = ""
    message: str = ""
    count: int | None = None  # how often it has happened; None in the newer form of events
    last_timestamp: datetime | None = None
    event_time: datetime | None = None

    def is_about(self, name: str) -> bool:
        """Tell whether the event is about this object or one made from it."""
        return self.involved_object.name == name or self.involved_object.name.startswith(f"{name}-")

    @property
    def at(self) -> datetime | None:
        """Return when it happened last."""
        return self.last_timestamp or self.event_time or self.metadata.creation_timestamp

    @property
    def sort_time(self) -> str:
        return self.last_timestamp.isoformat() if self.last_timestamp else ""


class ClusterObjectHeader(ApiStruct):
    """Any object, reduced to its metadata."""

    api_version: str = ""
    kind: str = ""
    metadata: FullObjectMeta = msgspec.field(default_factory=FullObjectMeta)


class ObjectVersion(ApiStruct):
    """The resource version of an object, and nothing else of it."""

    class Of(ApiStruct):
        resource_version: str = ""

    metadata: Of


class ListMeta(ApiStruct):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class KubernetesListPage(ApiStruct):
    """One page of a list, with undecoded items."""

    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[msgspec.Raw] | None = None  # some servers send null for an empty list


class WatchLine(ApiStruct):
    """One line of a watch."""

    type: str
    object: msgspec.Raw


class ApiStatusDetails(ApiStruct):
    retry_after_seconds: int = 0
    causes: list[dict[str, Any]] = []


class ApiStatus(ApiStruct):
    """The server's response when it refuses a request."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: ApiStatusDetails = msgspec.field(default_factory=ApiStatusDetails)


class CommandStatus(ApiStruct):
    """How a command in a container ended."""

    status: str = ""  # Success or Failure
    message: str = ""


def decode(body: bytes | msgspec.Raw, kind: type[T]) -> T:
    """Decode one object."""
    return msgspec.json.decode(body, type=kind)


def reencode(body: bytes | msgspec.Raw, kind: type[Any]) -> msgspec.Raw:
    """Encode an object again with only the fields we read."""
    return msgspec.Raw(msgspec.json.encode(decode(body, kind)))
