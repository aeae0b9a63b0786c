"""What pods and resource claims outside the broker hold in a cluster."""

from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction
from threading import Lock

import msgspec

from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.client import objects
from broker.provisioners.kubernetes.client.kinds import POD, Kind
from broker.provisioners.kubernetes.client.objects import ApiStruct, FullObjectMeta, ResourceClaim, decode
from broker.provisioners.kubernetes.client.quantities import ZERO, parse_quantity
from broker.provisioners.kubernetes.drivers.discovered_inventory import ForeignNodeUsage

HAMI_DEVICES = "hami.io/vgpu-devices-allocated"
ENDED_PHASES = ("Succeeded", "Failed")
ObjectKey = tuple[str, str]  # namespace, name
Amounts = dict[str, Fraction]  # by resource name


class ResourceRequests(ApiStruct):
    requests: dict[str, str] = {}
    limits: dict[str, str] = {}


class ContainerRequests(ApiStruct):
    resources: ResourceRequests = msgspec.field(default_factory=ResourceRequests)
    restart_policy: str = ""  # Always: a sidecar among the init containers


class ForeignPodSpec(ApiStruct):
    node_name: str = ""
    containers: list[ContainerRequests] = []
    init_containers: list[ContainerRequests] = []
    overhead: dict[str, str] = {}


class ForeignPodStatus(ApiStruct):
    phase: str = ""


class ForeignPod(ApiStruct):
    """A pod of others, with what it requests."""

    metadata: FullObjectMeta
    spec: ForeignPodSpec = msgspec.field(default_factory=ForeignPodSpec)
    status: ForeignPodStatus = msgspec.field(default_factory=ForeignPodStatus)


class ForeignUsage:
    """A watch sink that keeps what pods and claims outside this installation hold."""

    def __init__(self, installation: str) -> None:
        self._installation, self._lock = installation, Lock()
        self._pods: dict[ObjectKey, tuple[str, Amounts, tuple[str, ...]]] = {}
        self._claims: dict[ObjectKey, list[tuple[str, str]]] = {}  # (pool, device)
        self._listing: dict[Kind, set[ObjectKey]] = {}
        self._unlisted: set[Kind] = set()
        self._changed = False

    @property
    def selector(self) -> str:
        """Return the label selector of objects that are not ours."""
        return f"{labels.INSTALLATION}!={self._installation}"

    def expect(self, kinds: Iterable[Kind]) -> None:
        """Note which kinds are watched from now on: until they are listed, usage is incomplete."""
        self._unlisted = set(kinds)

    @property
    def is_complete(self) -> bool:
        return not self._unlisted

    def take_change(self) -> bool:
        """Return whether anything changed since the last call."""
        with self._lock:
            changed, self._changed = self._changed, False
            return changed

    def by_node(self) -> dict[str, ForeignNodeUsage]:
        """Return what others hold, by node name; a DRA pool has its node's name."""
        amounts: dict[str, Amounts] = defaultdict(dict)
        devices: dict[str, dict[str, str]] = defaultdict(dict)
        with self._lock:
            for (namespace, name), (node, requests, gpus) in self._pods.items():
                _add(amounts[node], requests)
                devices[node].update(dict.fromkeys(gpus, f"{namespace}/{name}"))
            for (namespace, name), held in self._claims.items():
                for pool, device in held:
                    devices[pool][device] = f"{namespace}/{name}"
        return {node: ForeignNodeUsage(amounts[node], devices[node]) for node in {*amounts, *devices}}

    def begun(self, kind: Kind) -> None:
        self._listing[kind] = set()

    def paged(self, kind: Kind, items: list[objects.Raw], version: int) -> None:
        self._listing[kind] |= {self._keep(kind, item) for item in items}

    def listed(self, kind: Kind, version: int) -> None:
        there = self._listing.pop(kind, set())
        with self._lock:
            for key in {*self._known(kind)} - there:
                del self._known(kind)[key]
            self._unlisted -= {kind}
            self._changed = True

    def changed(self, kind: Kind, how: str, item: objects.Raw, version: int) -> None:
        key = self._keep(kind, item)
        if how == "DELETED":
            with self._lock:
                self._changed |= self._known(kind).pop(key, None) is not None

    def heard(self, kind: Kind, version: int) -> None:
        """Ignore bookmarks: nothing is stored by version."""

    def _known(self, kind: Kind) -> dict[ObjectKey, object]:
        return self._pods if kind is POD else self._claims  # type: ignore[return-value]

    def _keep(self, kind: Kind, item: objects.Raw) -> ObjectKey:
        key, held = self._read(kind, item)
        with self._lock:
            known = self._known(kind)
            if not held:
                self._changed |= known.pop(key, None) is not None
            elif known.get(key) != held:
                known[key] = held
                self._changed = True
        return key

    def _read(self, kind: Kind, item: objects.Raw) -> tuple[ObjectKey, object]:
        if kind is POD:
            pod = decode(item, ForeignPod)
            return (pod.metadata.namespace, pod.metadata.name), self._pod_usage(pod)
        claim = decode(item, ResourceClaim)
        devices = [(each.pool, each.device) for each in claim.devices]
        return (claim.metadata.namespace, claim.metadata.name), devices

    def _pod_usage(self, pod: ForeignPod) -> tuple[str, Amounts, tuple[str, ...]] | None:
        """Return a pod's node, requests and GPUs; None if it holds nothing or is ours."""
        marks = pod.metadata.labels
        ours = labels.LEASE in marks and labels.INSTALLATION not in marks
        if ours or not pod.spec.node_name or pod.status.phase in ENDED_PHASES:
            return None
        gpus = _hami_gpus(pod.metadata.annotations.get(HAMI_DEVICES, ""))
        return pod.spec.node_name, pod_requests(pod.spec), gpus


def pod_requests(spec: ForeignPodSpec) -> Amounts:
    """Return what a pod holds of its node, as the scheduler counts it."""
    sidecars = [each for each in spec.init_containers if each.restart_policy == "Always"]
    starting = [each for each in spec.init_containers if each.restart_policy != "Always"]
    total = _sum_requests([*spec.containers, *sidecars])
    for each in starting:
        for name, amount in _sum_requests([each]).items():
            total[name] = max(total.get(name, ZERO), amount)
    _add(total, {name: parse_quantity(text) for name, text in spec.overhead.items()})
    return total


def _sum_requests(containers: Iterable[ContainerRequests]) -> Amounts:
    total: Amounts = {}
    for each in containers:
        wanted = {**each.resources.limits, **each.resources.requests}
        _add(total, {name: parse_quantity(text) for name, text in wanted.items()})
    return total


def _add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, ZERO) + amount


def _hami_gpus(annotation: str) -> tuple[str, ...]:
    """Return the UUIDs in HAMi's record of a pod: `GPU-…,NVIDIA,8000,30:;`."""
    parts = annotation.replace(";", ":").split(":")
    return tuple(sorted({part.partition(",")[0] for part in parts if part.startswith("GPU-")}))
