"""Checks of tenant isolation: network policies, pod security, webhooks, quotas."""

from broker.provisioners.kubernetes.doctor.findings import CheckResult, ClusterCheck, bad, list_some, ok, unknown, warn
from broker.provisioners.kubernetes.doctor.snapshot import NOT_READ, ClusterSnapshot, UnreadablePart, require_readable

# Network plugins that enforce network policies, by DaemonSet name.
ENFORCING = {
    "anetd": "GKE Dataplane V2",
    "antrea-agent": "Antrea",
    "azure-npm": "Azure NPM",
    "calico-node": "Calico",
    "canal": "Canal",
    "cilium": "Cilium",
    "kube-router": "kube-router",
    "kindnet": "kindnet",
    "ovnkube-node": "OVN-Kubernetes",
    "weave-net": "Weave Net",
}
NOT_ENFORCING = {"kube-flannel": "Flannel", "kube-flannel-ds": "Flannel"}
NETWORK_FIX = (
    "Use a network plugin that enforces them (Calico, Cilium, Antrea). Otherwise tenants can reach each other's pods."
)
PROBE_FIX = "Test it as an administrator: `manage.py kube_doctor --kubeconfig FILE --try-network IMAGE`."
HARMLESS_WEBHOOKS = ("gpubroker", "hami")


def _check_network_policies(s: ClusterSnapshot) -> CheckResult:
    if s.network is not NOT_READ:
        return _check_probe_result(s)
    running = {each["metadata"]["name"] for each in require_readable(s.daemon_sets)}
    if found := [word for name, word in ENFORCING.items() if name in running]:
        return ok(f"{list_some(found)} is installed; only --try-network tests enforcement")
    if found := [word for name, word in NOT_ENFORCING.items() if name in running]:
        return bad(f"{list_some(found)} ignores network policies", NETWORK_FIX)
    return unknown("no network plugin that is known to enforce network policies", PROBE_FIX)


def _check_probe_result(s: ClusterSnapshot) -> CheckResult:
    """Return the network probe's result, which outranks the name of any network plugin."""
    if isinstance(s.network, UnreadablePart):
        return unknown(s.network.reason, PROBE_FIX)
    if not s.network:
        return bad("in a test, a pod was reachable against its policy", NETWORK_FIX)
    return ok("in a test, a policy made a pod unreachable")


def _check_pod_security(s: ClusterSnapshot) -> CheckResult:
    if not require_readable(s.pod_security):
        return bad(
            "an invalid level was accepted",
            "Enable the admission plugin PodSecurity. It keeps tenants off the host.",
        )
    return ok("in a test, an invalid level was refused")


def _check_webhooks(s: ClusterSnapshot) -> CheckResult:
    touching = [
        each["metadata"]["name"]
        for each in require_readable(s.webhooks)
        if not any(word in each["metadata"]["name"].lower() for word in HARMLESS_WEBHOOKS)
        and any(
            "pods" in rule.get("resources", []) for one in each.get("webhooks", []) for rule in one.get("rules", [])
        )
    ]
    if touching:
        return warn(
            f"{list_some(touching)} may change pods",
            "Exclude namespaces with app.kubernetes.io/managed-by=gpubroker. Changed pods may be refused or unsafe.",
        )
    return ok("no other webhook changes pods")


def _check_quotas(s: ClusterSnapshot) -> CheckResult:
    ours = require_readable(s.quotas)
    if not ours:
        return unknown("no project has a namespace here yet", "Run the check again after the first lease.")
    if idle := [each["metadata"]["namespace"] for each in ours if not each.get("status", {}).get("hard")]:
        return bad(
            f"quotas are not enforced in {list_some(idle)}",
            "Check the controller manager and the admission plugin ResourceQuota.",
        )
    return ok(f"enforced in {len(ours)} namespaces")


CHECKS = (
    ClusterCheck("network-policies", "Only they isolate the pods of tenants from each other.", _check_network_policies),
    ClusterCheck("pod-security", "It refuses pods that could access the host.", _check_pod_security),
    ClusterCheck("webhooks", "Other webhooks may undo what the broker set on pods.", _check_webhooks),
    ClusterCheck("quotas", "They limit usage even if the broker's own records were wrong.", _check_quotas),
)
