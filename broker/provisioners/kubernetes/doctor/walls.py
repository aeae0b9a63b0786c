"""Would the walls between tenants stand?"""

from broker.provisioners.kubernetes.doctor.findings import Answer, Check, bad, names, ok, unknown, warn
from broker.provisioners.kubernetes.doctor.snapshot import NOT_ASKED, Snapshot, Unseen, seen

# What makes network policies hold, by the names under which it runs on every node.
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
ANOTHER_NETWORK = (
    "Use a network that keeps them (Calico, Cilium, Antrea): else tenants reach each other's pods."
)
LET_TRY = "Let pods try, as an administrator: `manage.py kube_doctor --kubeconfig FILE --try-network IMAGE`."
HARMLESS = ("gpubroker", "hami")


def _network(s: Snapshot) -> Answer:
    if s.network is not NOT_ASKED:
        return _tried(s)
    running = {each["metadata"]["name"] for each in seen(s.daemon_sets)}
    if found := [word for name, word in ENFORCING.items() if name in running]:
        return ok(f"{names(found)} is there; that it holds is proven only by pods that try: --try-network")
    if found := [word for name, word in NOT_ENFORCING.items() if name in running]:
        return bad(f"{names(found)} ignores network policies", ANOTHER_NETWORK)
    return unknown("no network that is known to keep network policies", LET_TRY)


def _tried(s: Snapshot) -> Answer:
    """Say what became of pods that tried: it counts for more than the name of any network."""
    if isinstance(s.network, Unseen):
        return unknown(s.network.why, LET_TRY)
    if not s.network:
        return bad("a pod that a policy closes was reached on trial", ANOTHER_NETWORK)
    return ok("a pod that a policy closes was out of reach on trial")


def _pod_security(s: Snapshot) -> Answer:
    if not seen(s.pod_security):
        return bad(
            "a level that does not exist was accepted",
            "Turn the admission plugin PodSecurity back on: it keeps tenants from the host.",
        )
    return ok("a level that does not exist was refused on trial")


def _webhooks(s: Snapshot) -> Answer:
    touching = [
        each["metadata"]["name"]
        for each in seen(s.webhooks)
        if not any(word in each["metadata"]["name"].lower() for word in HARMLESS)
        and any(
            "pods" in rule.get("resources", [])
            for one in each.get("webhooks", [])
            for rule in one.get("rules", [])
        )
    ]
    if touching:
        return warn(
            f"{names(touching)} may change pods",
            "Exclude namespaces with app.kubernetes.io/managed-by=gpubroker: a changed pod may be refused or unsafe.",
        )
    return ok("nobody else changes pods")


def _quotas(s: Snapshot) -> Answer:
    ours = seen(s.quotas)
    if not ours:
        return unknown("no project has a namespace here yet", "Ask again after the first lease.")
    if idle := [each["metadata"]["namespace"] for each in ours if not each.get("status", {}).get("hard")]:
        return bad(
            f"not counted in {names(idle)}",
            "Look at the controller manager and the admission plugin ResourceQuota: the third wall does not stand.",
        )
    return ok(f"counted in {len(ours)} namespaces")


CHECKS = (
    Check("network-policies", "They alone keep one tenant's pods from another's.", _network),
    Check("pod-security", "It refuses pods that would reach for the host.", _pod_security),
    Check("webhooks", "What changes pods on their way may undo what we rendered.", _webhooks),
    Check("quotas", "They hold even if our own books were wrong.", _quotas),
)
