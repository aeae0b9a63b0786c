"""Looking at a cluster: a few dozen questions, several at once, each of which may fail alone."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import msgspec

from broker.provisioners.base import Unanswered
from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.doctor import kinds
from broker.provisioners.kubernetes.doctor.credentials import credential_of
from broker.provisioners.kubernetes.doctor.snapshot import AskingPod, Snapshot, Thing, Unseen, Version
from broker.provisioners.kubernetes.doctor.trying import network_holds
from broker.provisioners.kubernetes.drivers.base import SliceDriver
from broker.provisioners.kubernetes.drivers.dra import DraDriver, unpublished
from broker.provisioners.kubernetes.finding import HEARTBEATS, all_of_ours
from broker.provisioners.kubernetes.kinds import (
    CONFIG_MAP,
    NAMESPACE,
    NODE,
    NODE_LEASE,
    POD,
    Kind,
    Manifest,
    Ref,
    ref_of,
)
from broker.provisioners.kubernetes.objects import Lease, Node, ResourceSlice, read
from broker.provisioners.kubernetes.objects import Thing as Object
from broker.provisioners.kubernetes.refusals import Forbidden, Invalid, Missing, OverQuota, Refusal
from broker.provisioners.kubernetes.render import access
from broker.provisioners.kubernetes.render.access import Right
from broker.provisioners.kubernetes.render.cluster import cluster_objects
from broker.provisioners.kubernetes.transport import STRANGE, Api, Transport
from ports import clock

FIRST_S, ALL_S = 5.0, 20.0
AT_ONCE = 8
# What comes of reading an answer that no API server would give; a DecodeError is a ValueError.
STRANGE_ANSWERS = (ValueError, LookupError, TypeError, AttributeError)
LONGEST = 300
JUDGED = {
    "CronJob",
    "DeviceClass",
    "PriorityClass",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
}
NO_LEVEL = "no-such-level"
T = TypeVar("T")
Answers = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Known:
    """What our books say of a cluster that is registered."""

    uid: str = ""
    orders: frozenset[str] | None = None
    door: str = ""
    entrances: tuple[str, ...] = ()


def take(
    kubeconfig: Mapping[str, Any],
    driver: SliceDriver,
    *,
    known: Known,
    now: datetime,
    transport: Transport | None = None,
    tries: str = "",
) -> Snapshot:
    """Look at everything that may be looked at; what is refused or fails is marked so.

    Nothing is made there, unless `tries` names the image of pods that try whether network policies hold.
    """
    transport = transport or Transport(lambda: kubeconfig)
    bare = Snapshot(
        driver=driver.name,
        now=now,
        credential=credential_of(kubeconfig),
        known_uid=known.uid,
        door=known.door,
        entrances=known.entrances,
    )
    first = _first(transport, now)
    if isinstance(first, Unseen):
        return replace(bare, version=first)
    api = transport.within(ALL_S)
    questions = _questions(api, driver)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        asked = {name: pool.submit(_tried, question) for name, question in questions.items()}
        rights = {each: pool.submit(_tried, _may(api, each)) for each in _all_rights()}
        wanted = {
            ref: pool.submit(_tried, _as_wanted(api, ref, each)) for ref, each in _wanted(driver).items()
        }
    said = {name: each.result() for name, each in asked.items()}
    allowed = {right: each.result() for right, each in rights.items()}
    unanswered = next((each for each in allowed.values() if isinstance(each, Unseen)), None)
    parts: dict[str, Any] = {
        **said,
        "rights": unanswered or allowed,
        "installed": {ref: each.result() for ref, each in wanted.items()},
        "accounted": known.orders,
    }
    parts["found"] = _found(driver, parts["nodes"], parts["slices"], parts["device_classes"])
    if isinstance(driver, DraDriver) and not isinstance(parts["slices"], Unseen):
        parts["unpublished"] = unpublished(parts["slices"], driver.models)
    parts["policies_refuse"] = _tried(_policies_refuse(api, parts["namespaces"]))
    if tries:
        parts["network"] = network_holds(transport, image=tries)
    return replace(bare, **{**first, **parts})


def _first(transport: Transport, now: datetime) -> dict[str, Any] | Unseen:
    """Knock: is anybody there, does it know us, what time is it there?"""
    handed_in = clock.monotonic()
    try:
        api = transport.within(FIRST_S)
        api.send("GET", "/version")  # connects
        began = clock.monotonic()
        answer = api.send("GET", "/version")
        took = timedelta(seconds=clock.monotonic() - began)
        version = read(answer.body, Version)
        there = parsedate_to_datetime(answer.headers["Date"]) if "Date" in answer.headers else None
        # It tells whole seconds, at a moment somewhere within the round trip.
        sent = now + timedelta(seconds=began - handed_in) + took / 2
        skew = there + timedelta(seconds=0.5) - sent if there else None
    except (Unanswered, Refusal) as error:
        return Unseen(str(error))
    except STRANGE_ANSWERS as error:
        return Unseen(f"{STRANGE}: {error!r}"[:LONGEST])
    if not version.git_version:
        return Unseen(f"{STRANGE}: it names no version")
    return {
        "version": version,
        "round_trip": took,
        "skew": skew if skew is not None else Unseen("its answers carry no date"),
    }


def _tried(question: Callable[[], T]) -> T | Unseen:
    """Ask, and say why there is no answer."""
    try:
        return question()
    except Missing:
        return Unseen("the server does not know this kind")
    except (Unanswered, Refusal) as error:
        return Unseen(f"could not be read: {error}")
    except STRANGE_ANSWERS as error:
        return Unseen(f"could not be read: {STRANGE}: {error!r}"[:LONGEST])


def _questions(api: Api, driver: SliceDriver) -> dict[str, Callable[[], Any]]:
    """Return what is asked, by the part of the snapshot that it answers."""
    return {
        "uid": lambda: _uid(api),
        "groups": lambda: _groups(api),
        "namespaces": lambda: _plain(api, NAMESPACE),
        "nodes": lambda: _all(api, NODE, Node),
        "heartbeats": lambda: {
            each.metadata.name: each.spec.renew_time
            for each in _all(api, NODE_LEASE, Lease, namespace=HEARTBEATS)
            if each.spec.renew_time
        },
        "slices": lambda: _all(api, kinds.SLICE, ResourceSlice, absent=True),
        "pods": lambda: _all(api, POD, AskingPod, fields="status.phase!=Succeeded,status.phase!=Failed"),
        "device_classes": lambda: _plain(api, kinds.DEVICE_CLASS, absent=True),
        "cluster_policies": lambda: _plain(api, kinds.CLUSTER_POLICY, absent=True),
        "gpu_clusters": lambda: _plain(api, kinds.GPU_CLUSTER, absent=True),
        "daemon_sets": lambda: _plain(api, kinds.DAEMON_SET),
        "config_maps": lambda: _nvidias(api),
        "storage_classes": lambda: _plain(api, kinds.STORAGE_CLASS),
        "ingress_classes": lambda: _plain(api, kinds.INGRESS_CLASS),
        "webhooks": lambda: _plain(api, kinds.MUTATING),
        "quotas": lambda: _plain(api, kinds.QUOTA, labels=labels.OURS),
        "pod_security": lambda: _refuses(api, _namespace_at(NO_LEVEL)),
        "ours": lambda: _ours(api),
    }


def _ours(api: Api) -> dict[str, datetime | None]:
    """Name what is there of leases, and since when of each something is gone but for our holding it."""
    found: dict[str, datetime | None] = {}
    for name, things in all_of_ours(api).items():
        held = (each.metadata for _, each in things if labels.METERING in each.metadata.finalizers)
        found[name] = min((meta.deletion_timestamp for meta in held if meta.deletion_timestamp), default=None)
    return found


def _all(api: Api, kind: Kind, struct: type[T], *, absent: bool = False, **chosen: str) -> list[T]:
    """List and decode; with `absent` a kind that is not served counts as none of it."""
    try:
        items, _ = api.list_all(kind, **chosen)  # type: ignore[arg-type]
    except Missing:
        if absent:
            return []
        raise
    return [read(each, struct) for each in items]


def _plain(api: Api, kind: Kind, *, absent: bool = False, **chosen: str) -> list[Thing]:
    return _all(api, kind, dict, absent=absent, **chosen)


def _uid(api: Api) -> str:
    body = api.get(Ref(NAMESPACE, "kube-system"))
    return read(body, Object).metadata.uid if body else ""


def _groups(api: Api) -> frozenset[str]:
    """Return every group with version that is served."""
    listed = msgspec.json.decode(api.send("GET", "/apis").body)["groups"]
    return frozenset(version["groupVersion"] for group in listed for version in group["versions"])


def _nvidias(api: Api) -> list[Thing]:
    """Return the settings that NVIDIA's operator, its exporter and mig-manager are given."""
    there = {each["metadata"]["name"] for each in _plain(api, NAMESPACE)}
    homes = sorted(there & {"gpu-operator", "nvidia-gpu-operator", "nvidia", "nvidia-device-plugin"})
    return [each for home in homes for each in _plain(api, CONFIG_MAP, namespace=home)]


def _all_rights() -> list[Right]:
    return [*access.rights(access.BROKER), *access.rights(access.DOCTOR), *access.NEVER]


def _may(api: Api, right: Right) -> Callable[[], bool]:
    """Ask the server itself what it would allow us."""
    asked = {"verb": right.verb, "group": right.group, "resource": right.kinds, "subresource": right.part}
    review = {
        "apiVersion": kinds.REVIEW.api_version,
        "kind": kinds.REVIEW.name,
        "spec": {"resourceAttributes": {name: value for name, value in asked.items() if value}},
    }

    def ask() -> bool:
        answer = api.send("POST", kinds.REVIEW.path(), body=review)
        return bool(msgspec.json.decode(answer.body)["status"].get("allowed"))

    return ask


def _wanted(driver: SliceDriver) -> dict[str, Manifest]:
    """Return what a cluster is given once and may be looked at, by what it is called."""
    given = (each for each in cluster_objects(driver, image="") if each["kind"] in JUDGED)
    return {f"{each['kind']} {each['metadata']['name']}": each for each in given}


def _as_wanted(api: Api, ref: str, wanted: Manifest) -> Callable[[], bool | None]:
    """Ask whether an object is as we would install it; None when it is not there."""

    def ask() -> bool | None:
        body = api.get(ref_of(wanted))
        return covers(msgspec.json.decode(body), wanted) if body else None

    return ask


def covers(there: Any, wanted: Any) -> bool:
    """Tell whether all that we want is there; what the server adds by itself is no difference."""
    if isinstance(wanted, Mapping):
        return isinstance(there, Mapping) and all(
            covers(there[name], value) if name in there else not value  # empty is left out
            for name, value in wanted.items()
            if name != "image"  # of the dead man's switch: whatever was installed
        )
    if isinstance(wanted, list):
        return isinstance(there, list) and len(there) == len(wanted) and all(map(covers, there, wanted))
    return bool(there == wanted)


def _found(
    driver: SliceDriver,
    nodes: list[Node] | Unseen,
    slices: list[ResourceSlice] | Unseen,
    classes: list[Thing] | Unseen,
) -> Any:
    if isinstance(nodes, Unseen):
        return nodes
    known = None if isinstance(classes, Unseen) else {each["metadata"]["name"] for each in classes}
    return slices if isinstance(slices, Unseen) else driver.inventory(nodes, slices, known)


def _namespace_at(level: str) -> Manifest:
    marks = {"pod-security.kubernetes.io/enforce": level}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gpub-examines", "labels": marks}}


def _refuses(api: Api, manifest: Manifest) -> bool:
    """Tell whether the server would refuse to make this; nothing is made."""
    ref = ref_of(manifest)
    try:
        api.send("POST", ref.kind.path(ref.namespace), query={"dryRun": "All"}, body=manifest)
    except (Forbidden, Invalid):
        return True
    except OverQuota:  # which is asked last: nothing before it had said no
        return False
    return False


def _policies_refuse(api: Api, namespaces: list[Thing] | Unseen) -> Callable[[], bool | Unseen]:
    """Try what our policies forbid in a namespace of a project, without making it."""

    def ask() -> bool | Unseen:
        if isinstance(namespaces, Unseen):
            return namespaces
        ours = (
            each["metadata"]["name"]
            for each in namespaces
            if each["metadata"].get("labels", {}).get(labels.MANAGED_BY) == labels.US
            and each.get("status", {}).get("phase") == "Active"
        )
        home = next(ours, None)
        if home is None:
            return Unseen("no project has a namespace here yet")
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "gpub-examines", "namespace": home},
            "spec": {"type": "NodePort", "ports": [{"port": 80}]},
        }
        return _refuses(api, service)

    return ask
