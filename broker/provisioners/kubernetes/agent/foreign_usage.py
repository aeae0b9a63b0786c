"""What pods and resource claims outside the broker hold in a cluster."""

from collections import defaultdict
from collections.abc import Iterable
from threading import Lock
from typing import NamedTuple

import msgspec

from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.client import objects
from broker.provisioners.kubernetes.client.kinds import POD, Kind
from broker.provisioners.kubernetes.client.objects import ApiStruct, FullObjectMeta, ResourceClaim, decode
from broker.provisioners.kubernetes.client.pod_requests import (
    Amounts,
    PodRequestsSpec,
    add_amounts,
    node_owner,
    pod_requests,
    raise_amounts,
)
from broker.provisioners.kubernetes.drivers.discovered_inventory import ForeignNodeUsage
from broker.provisioners.kubernetes.drivers.dra_devices import DRA_DRIVER_NAME
from ports import clock

HAMI_DEVICES = "hami.io/vgpu-devices-allocated"
ENDED_PHASES = ("Succeeded", "Failed")
RESTART_S = 600.0  # for so long a daemon set's missing pod counts: it is being replaced
ObjectKey = tuple[str, str]  # namespace, name


class PodUsage(NamedTuple):
    """What one pod of others holds, and where."""

    node: str
    requests: Amounts
    gpus: tuple[str, ...]
    owner: str  # the daemon set or static pod it belongs to; empty: an ordinary pod


class ExtendedResourceRequest(ApiStruct):
    resource_name: str = ""


class ExtendedResourceClaim(ApiStruct):
    """The claim by which the scheduler provides extended resources (KEP-5004)."""

    request_mappings: list[ExtendedResourceRequest] = []


class ForeignPodStatus(ApiStruct):
    phase: str = ""
    extended_resource_claim_status: ExtendedResourceClaim = msgspec.field(default_factory=ExtendedResourceClaim)


class ForeignPod(ApiStruct):
    """A pod of others, with what it requests."""

    metadata: FullObjectMeta
    spec: PodRequestsSpec = msgspec.field(default_factory=PodRequestsSpec)
    status: ForeignPodStatus = msgspec.field(default_factory=ForeignPodStatus)


class NodeUsage:
    """What others hold of one node, while it is summed up."""

    def __init__(self) -> None:
        self.amounts: Amounts = {}
        self.ordinary: Amounts = {}
        self.daemon_sets: dict[str, Amounts] = {}  # by daemon set or static pod
        self.devices: dict[str, str] = {}

    def add(self, pod: PodUsage, name: str) -> None:
        """Add a pod; of a daemon set only one pod counts."""
        add_amounts(self.amounts, pod.requests)
        self.devices.update(dict.fromkeys(pod.gpus, name))
        if pod.owner:
            raise_amounts(self.daemon_sets.setdefault(pod.owner, {}), pod.requests)
        else:
            add_amounts(self.ordinary, pod.requests)

    def summary(self) -> ForeignNodeUsage:
        """Return the sums."""
        together: Amounts = {}
        for requests in self.daemon_sets.values():
            add_amounts(together, requests)
        return ForeignNodeUsage(self.amounts, self.devices, together, self.ordinary)


class ForeignUsage:
    """A watch sink that keeps what pods and claims outside this installation hold."""

    def __init__(self, installation: str) -> None:
        self._installation, self._lock = installation, Lock()
        self._pods: dict[ObjectKey, PodUsage] = {}
        # Last requests of daemon sets' pods that are gone, by node and daemon set, and until when they count.
        self._gone: dict[tuple[str, str], tuple[Amounts, float]] = {}
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
        found: dict[str, NodeUsage] = defaultdict(NodeUsage)
        with self._lock:
            self._forget_old()
            for (node, owner), (requests, _) in self._gone.items():
                found[node].daemon_sets[owner] = dict(requests)
            for (namespace, name), pod in self._pods.items():
                found[pod.node].add(pod, f"{namespace}/{name}")
            for (namespace, name), held in self._claims.items():
                for pool, device in held:
                    found[pool].devices[device] = f"{namespace}/{name}"
        return {node: usage.summary() for node, usage in found.items()}

    def _forget_old(self) -> None:
        moment = clock.monotonic()
        self._gone = {key: kept for key, kept in self._gone.items() if kept[1] > moment}

    def begun(self, kind: Kind) -> None:
        self._listing[kind] = set()

    def paged(self, kind: Kind, items: list[objects.Raw], version: int) -> None:
        self._listing[kind] |= {self._keep(kind, item) for item in items}

    def listed(self, kind: Kind, version: int) -> None:
        there = self._listing.pop(kind, set())
        with self._lock:
            for key in {*self._known(kind)} - there:
                self._drop(kind, key)
            self._unlisted -= {kind}
            self._changed = True

    def changed(self, kind: Kind, how: str, item: objects.Raw, version: int) -> None:
        key = self._keep(kind, item)
        if how == "DELETED":
            with self._lock:
                self._drop(kind, key)

    def heard(self, kind: Kind, version: int) -> None:
        """Ignore bookmarks: nothing is stored by version."""

    def _known(self, kind: Kind) -> dict[ObjectKey, object]:
        return self._pods if kind is POD else self._claims  # type: ignore[return-value]

    def _keep(self, kind: Kind, item: objects.Raw) -> ObjectKey:
        key, held = self._read(kind, item)
        with self._lock:
            known = self._known(kind)
            if not held:
                self._drop(kind, key)
            elif known.get(key) != held:
                known[key] = held
                self._changed = True
        return key

    def _drop(self, kind: Kind, key: ObjectKey) -> None:
        """Forget an object; a daemon set's pod counts until it has been replaced."""
        held = self._known(kind).pop(key, None)
        self._changed |= held is not None
        if isinstance(held, PodUsage) and held.owner:
            self._gone[held.node, held.owner] = held.requests, clock.monotonic() + RESTART_S

    def _read(self, kind: Kind, item: objects.Raw) -> tuple[ObjectKey, object]:
        if kind is POD:
            pod = decode(item, ForeignPod)
            return (pod.metadata.namespace, pod.metadata.name), self._pod_usage(pod)
        claim = decode(item, ResourceClaim)
        devices = [
            (each.pool, each.device)
            for each in claim.devices
            if each.driver == DRA_DRIVER_NAME and not each.admin_access
        ]
        return (claim.metadata.namespace, claim.metadata.name), devices

    def _pod_usage(self, pod: ForeignPod) -> PodUsage | None:
        """Return what a pod holds; None if it holds nothing or is ours."""
        marks = pod.metadata.labels
        ours = labels.LEASE in marks and labels.INSTALLATION not in marks
        if ours or not pod.spec.node_name or pod.status.phase in ENDED_PHASES:
            return None
        gpus = _hami_gpus(pod.metadata.annotations.get(HAMI_DEVICES, ""))
        claimed = {each.resource_name for each in pod.status.extended_resource_claim_status.request_mappings}
        requests = {
            name: n for name, n in pod_requests(pod.spec).items() if name not in claimed
        }  # its claim names them
        return PodUsage(pod.spec.node_name, requests, gpus, node_owner(pod.metadata))


def _hami_gpus(annotation: str) -> tuple[str, ...]:
    """Return the UUIDs in HAMi's record of a pod: `GPU-…,NVIDIA,8000,30:;`."""
    parts = annotation.replace(";", ":").split(":")
    return tuple(sorted({part.partition(",")[0] for part in parts if part.startswith("GPU-")}))
