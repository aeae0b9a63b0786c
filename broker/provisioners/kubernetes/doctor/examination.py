"""All checks of a cluster, in the order in which people read them."""

from broker.provisioners.kubernetes.doctor import (
    cluster_checks,
    connection_checks,
    gpu_checks,
    isolation_checks,
    permission_checks,
    telemetry_checks,
)
from broker.provisioners.kubernetes.doctor.findings import CheckOutcome, ClusterCheck, ClusterFinding, run_check
from broker.provisioners.kubernetes.doctor.snapshot import ClusterSnapshot, UnreadablePart

REACHABLE_CHECK = "reachable"
CHECKS: tuple[ClusterCheck, ...] = (
    *connection_checks.CHECKS,
    *permission_checks.CHECKS,
    *gpu_checks.CHECKS,
    *isolation_checks.CHECKS,
    *cluster_checks.CHECKS,
    *telemetry_checks.CHECKS,
)
# The usual cause of a connection failure, by a word of the error.
ERROR_FIXES = (
    (
        "like Kubernetes",
        "Another service or a proxy answers. Check `server`, its port, and proxies in between.",
    ),
    (
        "CERTIFICATE_VERIFY_FAILED",
        "The server's certificate was not signed by `certificate-authority-data`. Correct it.",
    ),
    ("NameResolution", "The host name cannot be resolved. Check `server`, and the DNS of the broker's hosts."),
    ("refused", "Nothing listens on this port. Check the port in `server`, and that the API server runs."),
    ("Timeout", "The connection timed out. Check firewalls, and whether the address is private."),
    ("SSL", "The TLS handshake failed. Check `server`."),
    (
        "Unauthorized",
        "The credentials expired or were revoked. Create new ones, for example with `manage.py kube_setup`.",
    ),
    ("kubeconfig", "Check the user of this kubeconfig. Its exec plugin or files must exist on the broker's hosts."),
)
DEFAULT_FIX = "Run `kubectl --kubeconfig FILE get --raw /version` on the broker's host."


def examine_cluster(snapshot: ClusterSnapshot) -> list[ClusterFinding]:
    """Run every check; if the server was not reached, return only the reason."""
    why = "No other check can run without access to the cluster."
    if isinstance(snapshot.version, UnreadablePart):
        message = snapshot.version.reason
        fix = next((fix for word, fix in ERROR_FIXES if word in message), DEFAULT_FIX)
        return [ClusterFinding(REACHABLE_CHECK, CheckOutcome.BAD, message, why, fix)]
    here = ClusterFinding(REACHABLE_CHECK, CheckOutcome.OK, "it responds and accepts the credentials", why, "")
    return [here, *(run_check(check, snapshot) for check in CHECKS)]


def has_no_bad_finding(findings: list[ClusterFinding]) -> bool:
    """Tell whether leases may run in the cluster: no finding is bad."""
    return all(each.outcome is not CheckOutcome.BAD for each in findings)
