"""Collect the snapshot: a few dozen parallel requests, each of which may fail alone."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import msgspec

from broker.provisioners.base import ClusterUnreachable
from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.client.api_errors import (
    AdmissionDenied,
    ApiRefusal,
    NamespaceQuotaExceeded,
    ObjectInvalid,
    ObjectMissing,
)
from broker.provisioners.kubernetes.client.kinds import (
    CONFIG_MAP,
    NAMESPACE,
    NODE,
    NODE_LEASE,
    POD,
    Kind,
    Manifest,
    ObjectRef,
    object_ref,
)
from broker.provisioners.kubernetes.client.objects import ClusterNode, NodeLease, ResourceSlice, decode
from broker.provisioners.kubernetes.client.objects import ClusterObjectHeader as Object
from broker.provisioners.kubernetes.client.transport import NOT_KUBERNETES, KubernetesApi, Transport
from broker.provisioners.kubernetes.doctor import kinds
from broker.provisioners.kubernetes.doctor.credentials import read_credential
from broker.provisioners.kubernetes.doctor.network_probe import probe_network_policies
from broker.provisioners.kubernetes.doctor.snapshot import (
    ClusterSnapshot,
    PodResources,
    RawObject,
    ServerVersion,
    UnreadablePart,
)
from broker.provisioners.kubernetes.drivers.cluster_driver import ClusterDriver
from broker.provisioners.kubernetes.drivers.dra import unpublished_profiles
from broker.provisioners.kubernetes.observe.object_lookup import HEARTBEAT_NAMESPACE, find_all_leases
from broker.provisioners.kubernetes.render import rbac
from broker.provisioners.kubernetes.render.cluster import cluster_objects
from broker.provisioners.kubernetes.render.rbac import AccessRight
from broker.provisioners.kubernetes.tolerations import Toleration
from ports import clock

FIRST_CALL_S, COLLECTION_S = 5.0, 20.0
PARALLEL_CALLS = 8
# Raised by reading a response that no API server would send; a DecodeError is a ValueError.
MALFORMED_RESPONSE = (ValueError, LookupError, TypeError, AttributeError)
MAX_ERROR_LENGTH = 300
COMPARED_KINDS = {
    "CronJob",
    "DeviceClass",
    "PriorityClass",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
}
UNKNOWN_LEVEL = "no-such-level"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RegisteredCluster:
    """What our database says of a registered cluster."""

    uid: str = ""
    orders: frozenset[str] | None = None
    ingress: str = ""
    allowed_namespaces: tuple[str, ...] = ()
    tolerations: tuple[Toleration, ...] = ()


def collect_snapshot(
    kubeconfig: Mapping[str, Any],
    driver: ClusterDriver,
    *,
    known: RegisteredCluster,
    now: datetime,
    transport: Transport | None = None,
    tries: str = "",
) -> ClusterSnapshot:
    """Read everything the checks need; mark what is refused or fails.

    Nothing is created in the cluster, unless `tries` names the image of pods that test whether network
    policies are enforced.
    """
    transport = transport or Transport(lambda: kubeconfig)
    bare = ClusterSnapshot(
        driver=driver.name,
        now=now,
        credential=read_credential(kubeconfig),
        known_uid=known.uid,
        ingress=known.ingress,
        allowed_namespaces=known.allowed_namespaces,
        tolerations=known.tolerations,
    )
    first = _first_contact(transport, now)
    if isinstance(first, UnreadablePart):
        return replace(bare, version=first)
    api = transport.within(COLLECTION_S)
    questions = _snapshot_reads(api, driver)
    with ThreadPoolExecutor(PARALLEL_CALLS) as pool:
        requested = {name: pool.submit(_try_read, question) for name, question in questions.items()}
        rights = {each: pool.submit(_try_read, _may_do(api, each)) for each in _rights_to_check()}
        wanted = {
            ref: pool.submit(_try_read, _is_current(api, ref, each)) for ref, each in _installed_objects(driver).items()
        }
    results = {name: each.result() for name, each in requested.items()}
    allowed = {right: each.result() for right, each in rights.items()}
    unanswered = next((each for each in allowed.values() if isinstance(each, UnreadablePart)), None)
    parts: dict[str, Any] = {
        **results,
        "rights": unanswered or allowed,
        "installed": {ref: each.result() for ref, each in wanted.items()},
        "accounted": known.orders,
    }
    parts["inventory"] = _found_inventory(driver, parts["nodes"], parts["slices"], parts["device_classes"])
    if driver.reads_resource_slices and not isinstance(parts["slices"], UnreadablePart):
        parts["unpublished"] = unpublished_profiles(parts["slices"], driver.models)
    parts["policies_refuse"] = _try_read(_policies_refuse(api, parts["namespaces"]))
    if tries:
        parts["network"] = probe_network_policies(transport, image=tries)
    return replace(bare, **{**first, **parts})


def _first_contact(transport: Transport, now: datetime) -> dict[str, Any] | UnreadablePart:
    """Contact the server and return its version, round trip and clock skew.

    Nothing else is read from a server that does not answer or does not accept us.
    """
    handed_in = clock.monotonic()
    try:
        api = transport.within(FIRST_CALL_S)
        api.send("GET", "/version")  # opens the connection
        began = clock.monotonic()
        answer = api.send("GET", "/version")
        took = timedelta(seconds=clock.monotonic() - began)
        version = decode(answer.body, ServerVersion)
        there = parsedate_to_datetime(answer.headers["Date"]) if "Date" in answer.headers else None
        # The header has whole seconds, of a moment somewhere within the round trip.
        sent = now + timedelta(seconds=began - handed_in) + took / 2
        skew = there + timedelta(seconds=0.5) - sent if there else None
    except (ClusterUnreachable, ApiRefusal) as error:
        return UnreadablePart(str(error))
    except MALFORMED_RESPONSE as error:
        return UnreadablePart(f"{NOT_KUBERNETES}: {error!r}"[:MAX_ERROR_LENGTH])
    if not version.git_version:
        return UnreadablePart(f"{NOT_KUBERNETES}: the response has no version")
    return {
        "version": version,
        "round_trip": took,
        "skew": skew if skew is not None else UnreadablePart("responses have no Date header"),
    }


def _try_read(question: Callable[[], T]) -> T | UnreadablePart:
    """Run a read; return the reason instead if it fails."""
    try:
        return question()
    except ObjectMissing:
        return UnreadablePart("the server does not serve this kind")
    except (ClusterUnreachable, ApiRefusal) as error:
        return UnreadablePart(f"could not be read: {error}")
    except MALFORMED_RESPONSE as error:
        return UnreadablePart(f"could not be read: {NOT_KUBERNETES}: {error!r}"[:MAX_ERROR_LENGTH])


def _snapshot_reads(api: KubernetesApi, driver: ClusterDriver) -> dict[str, Callable[[], Any]]:
    """Return the reads to make, by the snapshot part each of them fills."""
    return {
        "uid": lambda: _cluster_uid(api),
        "groups": lambda: _served_groups(api),
        "namespaces": lambda: _list_raw(api, NAMESPACE),
        "nodes": lambda: _list_decoded(api, NODE, ClusterNode),
        "heartbeats": lambda: {
            each.metadata.name: each.spec.renew_time
            for each in _list_decoded(api, NODE_LEASE, NodeLease, namespace=HEARTBEAT_NAMESPACE)
            if each.spec.renew_time
        },
        "slices": lambda: _list_decoded(api, kinds.SLICE, ResourceSlice, absent=True),
        "pods": lambda: _list_decoded(api, POD, PodResources, fields="status.phase!=Succeeded,status.phase!=Failed"),
        "device_classes": lambda: _list_raw(api, kinds.DEVICE_CLASS, absent=True),
        "cluster_policies": lambda: _list_raw(api, kinds.CLUSTER_POLICY, absent=True),
        "gpu_clusters": lambda: _list_raw(api, kinds.GPU_CLUSTER, absent=True),
        "daemon_sets": lambda: _list_raw(api, kinds.DAEMON_SET),
        "config_maps": lambda: _nvidia_config_maps(api),
        "storage_classes": lambda: _list_raw(api, kinds.STORAGE_CLASS),
        "ingress_classes": lambda: _list_raw(api, kinds.INGRESS_CLASS),
        "webhooks": lambda: _list_raw(api, kinds.MUTATING),
        "quotas": lambda: _list_raw(api, kinds.QUOTA, labels=labels.OURS_SELECTOR),
        "pod_security": lambda: _refuses_dry_run(api, _namespace_with_level(UNKNOWN_LEVEL)),
        "ours": lambda: _our_leases(api),
    }


def _our_leases(api: KubernetesApi) -> dict[str, datetime | None]:
    """Return our leases in the cluster and since when pods wait for release."""
    found: dict[str, datetime | None] = {}
    for name, things in find_all_leases(api).items():
        held = (each.metadata for _, each in things if labels.METERING_FINALIZER in each.metadata.finalizers)
        found[name] = min((meta.deletion_timestamp for meta in held if meta.deletion_timestamp), default=None)
    return found


def _list_decoded(api: KubernetesApi, kind: Kind, struct: type[T], *, absent: bool = False, **chosen: str) -> list[T]:
    """List and decode objects; with `absent`, an unserved kind counts as empty."""
    try:
        items, _ = api.list_all(kind, **chosen)  # type: ignore[arg-type]
    except ObjectMissing:
        if absent:
            return []
        raise
    return [decode(each, struct) for each in items]


def _list_raw(api: KubernetesApi, kind: Kind, *, absent: bool = False, **chosen: str) -> list[RawObject]:
    return _list_decoded(api, kind, dict, absent=absent, **chosen)


def _cluster_uid(api: KubernetesApi) -> str:
    body = api.get(ObjectRef(NAMESPACE, "kube-system"))
    return decode(body, Object).metadata.uid if body else ""


def _served_groups(api: KubernetesApi) -> frozenset[str]:
    """Return every API group version that is served."""
    listed = msgspec.json.decode(api.send("GET", "/apis").body)["groups"]
    return frozenset(version["groupVersion"] for group in listed for version in group["versions"])


def _nvidia_config_maps(api: KubernetesApi) -> list[RawObject]:
    """Return the ConfigMaps of NVIDIA's operator, exporter and mig-manager."""
    there = {each["metadata"]["name"] for each in _list_raw(api, NAMESPACE)}
    homes = sorted(there & {"gpu-operator", "nvidia-gpu-operator", "nvidia", "nvidia-device-plugin"})
    return [each for home in homes for each in _list_raw(api, CONFIG_MAP, namespace=home)]


def _rights_to_check() -> list[AccessRight]:
    return [*rbac.list_rights(rbac.BROKER_RULES), *rbac.list_rights(rbac.DOCTOR_RULES), *rbac.FORBIDDEN_RIGHTS]


def _may_do(api: KubernetesApi, right: AccessRight) -> Callable[[], bool]:
    """Return a call that asks the server whether we are allowed something."""
    requested = {"verb": right.verb, "group": right.group, "resource": right.kinds, "subresource": right.subresource}
    requested["name"] = right.name
    review = {
        "apiVersion": kinds.REVIEW.api_version,
        "kind": kinds.REVIEW.name,
        "spec": {"resourceAttributes": {name: value for name, value in requested.items() if value}},
    }

    def ask() -> bool:
        answer = api.send("POST", kinds.REVIEW.path(), body=review)
        return bool(msgspec.json.decode(answer.body)["status"].get("allowed"))

    return ask


def _installed_objects(driver: ClusterDriver) -> dict[str, Manifest]:
    """Return the objects installed once in a cluster that we compare, by name."""
    given = (each for each in cluster_objects(driver, image="") if each["kind"] in COMPARED_KINDS)
    return {f"{each['kind']} {each['metadata']['name']}": each for each in given}


def _is_current(api: KubernetesApi, ref: str, wanted: Manifest) -> Callable[[], bool | None]:
    """Return a call that compares an object with what we would install.

    The call returns None when the object does not exist.
    """

    def ask() -> bool | None:
        body = api.get(object_ref(wanted))
        return contains_wanted(msgspec.json.decode(body), wanted) if body else None

    return ask


def contains_wanted(there: Any, wanted: Any) -> bool:
    """Tell whether an object contains all we want; additions by the server are ignored."""
    if isinstance(wanted, Mapping):
        return isinstance(there, Mapping) and all(
            contains_wanted(there[name], value) if name in there else not value  # the server leaves out empty fields
            for name, value in wanted.items()
            if name != "image"  # the reaper's image may be whatever was installed
        )
    if isinstance(wanted, list):
        return isinstance(there, list) and len(there) == len(wanted) and all(map(contains_wanted, there, wanted))
    return bool(there == wanted)


def _found_inventory(
    driver: ClusterDriver,
    nodes: list[ClusterNode] | UnreadablePart,
    slices: list[ResourceSlice] | UnreadablePart,
    classes: list[RawObject] | UnreadablePart,
) -> Any:
    if isinstance(nodes, UnreadablePart):
        return nodes
    known = None if isinstance(classes, UnreadablePart) else {each["metadata"]["name"] for each in classes}
    return slices if isinstance(slices, UnreadablePart) else driver.inventory(nodes, slices, known)


def _namespace_with_level(level: str) -> Manifest:
    marks = {"pod-security.kubernetes.io/enforce": level}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gpub-examines", "labels": marks}}


def _refuses_dry_run(api: KubernetesApi, manifest: Manifest) -> bool:
    """Tell whether the server would refuse to create this, by a dry run."""
    ref = object_ref(manifest)
    try:
        api.send("POST", ref.kind.path(ref.namespace), query={"dryRun": "All"}, body=manifest)
    except (AdmissionDenied, ObjectInvalid):
        return True
    except NamespaceQuotaExceeded:  # quota is checked last: everything before it allowed the object
        return False
    return False


def _policies_refuse(
    api: KubernetesApi, namespaces: list[RawObject] | UnreadablePart
) -> Callable[[], bool | UnreadablePart]:
    """Return a dry-run test of our admission policies in a project's namespace."""

    def ask() -> bool | UnreadablePart:
        if isinstance(namespaces, UnreadablePart):
            return namespaces
        ours = (
            each["metadata"]["name"]
            for each in namespaces
            if each["metadata"].get("labels", {}).get(labels.MANAGED_BY) == labels.MANAGER_NAME
            and each.get("status", {}).get("phase") == "Active"
        )
        home = next(ours, None)
        if home is None:
            return UnreadablePart("no project has a namespace here yet")
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "gpub-examines", "namespace": home},
            "spec": {"type": "NodePort", "ports": [{"port": 80}]},
        }
        return _refuses_dry_run(api, service)

    return ask
