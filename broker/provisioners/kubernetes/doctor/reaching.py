"""Is it a cluster we can work with, is it the one we think it is, and how long may we come in?"""

import re
from datetime import timedelta

from broker.provisioners.kubernetes.doctor.findings import Answer, Check, bad, names, ok, unknown, warn
from broker.provisioners.kubernetes.doctor.snapshot import Snapshot, seen

OLDEST = (1, 34)
SKEW_WARN, SKEW_BAD = timedelta(seconds=5), timedelta(seconds=30)
FAR = timedelta(milliseconds=250)
SOON = timedelta(days=21)
APIS = (
    "apps/v1",
    "batch/v1",
    "networking.k8s.io/v1",
    "admissionregistration.k8s.io/v1",
    "coordination.k8s.io/v1",
)


def minor(version: str) -> tuple[int, int] | None:
    """Read 1.34 from what a server or kubelet calls its version; None when it is nothing of the kind."""
    found = re.match(r"v?(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else None


def _server_version(s: Snapshot) -> Answer:
    said = seen(s.version).git_version
    is_at = minor(said)
    if is_at is None:
        return unknown(f"the server calls itself {said!r}", "Look at `kubectl version`.")
    if is_at < OLDEST:
        return bad(said, f"Upgrade the control plane to {OLDEST[0]}.{OLDEST[1]} or newer.")
    return ok(said)


def _kubelet_versions(s: Snapshot) -> Answer:
    nodes = seen(s.nodes)
    if not nodes:
        return unknown("the cluster has no nodes", "Add nodes.")
    versions = {node.metadata.name: minor(node.status.node_info.kubelet_version) for node in nodes}
    old = [name for name, is_at in versions.items() if is_at is not None and is_at < OLDEST]
    if old:
        return warn(f"older kubelets on {names(old)}", "Upgrade these nodes before leases run there.")
    return ok(f"{len(nodes)} nodes, none older than {OLDEST[0]}.{OLDEST[1]}")


def _clock(s: Snapshot) -> Answer:
    skew = seen(s.skew)
    said = f"its clock is {abs(skew).total_seconds():.0f} s {'ahead of' if skew > timedelta() else 'behind'} ours"
    fix = "Let NTP or chrony run on the control plane and here."
    if abs(skew) >= SKEW_BAD:
        return bad(said, fix)
    return warn(said, fix) if abs(skew) >= SKEW_WARN else ok("less than 5 s from ours")


def _round_trip(s: Snapshot) -> Answer:
    took = seen(s.round_trip)
    said = f"{took.total_seconds() * 1000:.0f} ms for one small question"
    if took > FAR:
        return warn(said, "Run the broker's workers nearer to this cluster, or relieve its API server.")
    return ok(said)


def _same_cluster(s: Snapshot) -> Answer:
    uid = seen(s.uid)
    if not s.known_uid:
        return ok(f"it is {uid[:8]}, seen for the first time")
    if uid != s.known_uid:
        return bad(
            f"it is {uid[:8]}, but was {s.known_uid[:8]} when it was registered",
            "This is another cluster under the same address. Point the credentials back, or register it as new.",
        )
    return ok(f"it is still {uid[:8]}")


def _credential(s: Snapshot) -> Answer:
    way, ends = s.credential.kind, s.credential.ends
    renew = (
        "Make a new one (`manage.py kube_setup` prints a lasting one) and renew the cluster's credentials."
    )
    if ends is not None and ends <= s.now:
        return bad(f"the {way} ran out on {ends:%Y-%m-%d}", renew)
    if ends is not None and ends - s.now < SOON:
        return warn(f"the {way} runs out on {ends:%Y-%m-%d %H:%M} UTC", renew)
    if way == "program":
        return warn(
            "a program makes the credentials",
            "That program and its login must exist wherever workers run; a service account's token needs neither.",
        )
    return ok(f"a {way}" + (f" until {ends:%Y-%m-%d}" if ends else " without an end"))


def _apis(s: Snapshot) -> Answer:
    missing = set(APIS) - seen(s.groups)
    if missing:
        return bad(f"not served: {names(missing)}", "Do not turn these APIs off with --runtime-config.")
    return ok("everything a lease is made of is served")


CHECKS = (
    Check("server-version", "What leases are made of is stable from 1.34 on.", _server_version),
    Check(
        "kubelet-versions", "Old kubelets report devices and ends of pods in other ways.", _kubelet_versions
    ),
    Check("apis-served", "Pods, jobs, policies and walls come from these.", _apis),
    Check("clock", "Usage is charged by the cluster's timestamps and ends by ours.", _clock),
    Check("round-trip", "A lease takes about ten questions before it runs.", _round_trip),
    Check("same-cluster", "Leases in the books must not be looked for in another cluster.", _same_cluster),
    Check("credentials", "When they run out every lease here goes blind.", _credential),
)
