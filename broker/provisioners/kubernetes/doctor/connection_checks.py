"""Checks of the connection: version, clock, round trip, identity, credentials."""

import re
from datetime import timedelta

from broker.provisioners.kubernetes.doctor.findings import CheckResult, ClusterCheck, bad, list_some, ok, unknown, warn
from broker.provisioners.kubernetes.doctor.snapshot import ClusterSnapshot, require_readable

MIN_VERSION = (1, 34)
SKEW_WARN, SKEW_BAD = timedelta(seconds=5), timedelta(seconds=30)
SLOW_ROUND_TRIP = timedelta(milliseconds=250)
EXPIRY_WARNING = timedelta(days=21)
REQUIRED_APIS = (
    "apps/v1",
    "batch/v1",
    "networking.k8s.io/v1",
    "admissionregistration.k8s.io/v1",
    "coordination.k8s.io/v1",
)


def parse_minor_version(version: str) -> tuple[int, int] | None:
    """Parse (1, 34) from the version of a server or kubelet; None if unreadable."""
    found = re.match(r"v?(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else None


def _check_server_version(s: ClusterSnapshot) -> CheckResult:
    text = require_readable(s.version).git_version
    is_at = parse_minor_version(text)
    if is_at is None:
        return unknown(f"the server reports version {text!r}", "Check `kubectl version`.")
    if is_at < MIN_VERSION:
        return bad(text, f"Upgrade the control plane to {MIN_VERSION[0]}.{MIN_VERSION[1]} or newer.")
    return ok(text)


def _check_kubelet_versions(s: ClusterSnapshot) -> CheckResult:
    nodes = require_readable(s.nodes)
    if not nodes:
        return unknown("the cluster has no nodes", "Add nodes to the cluster.")
    versions = {node.metadata.name: parse_minor_version(node.status.node_info.kubelet_version) for node in nodes}
    old = [name for name, is_at in versions.items() if is_at is not None and is_at < MIN_VERSION]
    if old:
        return warn(f"older kubelets on {list_some(old)}", "Upgrade these nodes before leases run there.")
    return ok(f"{len(nodes)} nodes, none older than {MIN_VERSION[0]}.{MIN_VERSION[1]}")


def _check_clock(s: ClusterSnapshot) -> CheckResult:
    skew = require_readable(s.skew)
    text = (
        f"its clock is {abs(skew).total_seconds():.0f} s {'ahead of' if skew > timedelta() else 'behind'} the broker's"
    )
    fix = "Run NTP or chrony on the control plane and on the broker's hosts."
    if abs(skew) >= SKEW_BAD:
        return bad(text, fix)
    return warn(text, fix) if abs(skew) >= SKEW_WARN else ok("less than 5 s apart")


def _check_round_trip(s: ClusterSnapshot) -> CheckResult:
    took = require_readable(s.round_trip)
    text = f"{took.total_seconds() * 1000:.0f} ms for one small request"
    if took > SLOW_ROUND_TRIP:
        return warn(text, "Run the broker's workers closer to this cluster, or reduce the load on its API server.")
    return ok(text)


def _check_same_cluster(s: ClusterSnapshot) -> CheckResult:
    uid = require_readable(s.uid)
    if not s.known_uid:
        return ok(f"{uid[:8]}, seen for the first time")
    if uid != s.known_uid:
        return bad(
            f"{uid[:8]}, but {s.known_uid[:8]} was registered",
            "Another cluster has this address. Correct the credentials, or register it as a new cluster.",
        )
    return ok(f"still {uid[:8]}")


def _check_credential(s: ClusterSnapshot) -> CheckResult:
    kind, ends = s.credential.kind, s.credential.expires_at
    renew = "Create a new one (`manage.py kube_setup` creates one without expiry) and renew the cluster's credentials."
    if ends is not None and ends <= s.now:
        return bad(f"the {kind} expired on {ends:%Y-%m-%d}", renew)
    if ends is not None and ends - s.now < EXPIRY_WARNING:
        return warn(f"the {kind} expires on {ends:%Y-%m-%d %H:%M} UTC", renew)
    if kind == "program":
        return warn(
            "an exec plugin creates the credentials",
            "The plugin and its login must exist wherever workers run. A service account's token needs neither.",
        )
    return ok(f"a {kind}" + (f" until {ends:%Y-%m-%d}" if ends else " without expiry"))


def _check_apis_served(s: ClusterSnapshot) -> CheckResult:
    missing = set(REQUIRED_APIS) - require_readable(s.groups)
    if missing:
        return bad(f"not served: {list_some(missing)}", "Do not disable these APIs with --runtime-config.")
    return ok("all required APIs are served")


CHECKS = (
    ClusterCheck("server-version", "The APIs that leases use are stable since 1.34.", _check_server_version),
    ClusterCheck(
        "kubelet-versions", "Old kubelets report devices and ended pods differently.", _check_kubelet_versions
    ),
    ClusterCheck("apis-served", "Pods, jobs and policies of leases need these APIs.", _check_apis_served),
    ClusterCheck("clock", "Usage is charged by timestamps of the cluster and of the broker.", _check_clock),
    ClusterCheck("round-trip", "A lease needs about ten requests to start.", _check_round_trip),
    ClusterCheck("same-cluster", "Leases must not be searched in another cluster.", _check_same_cluster),
    ClusterCheck("credentials", "Leases cannot be managed after they expire.", _check_credential),
)
