"""Checks of cluster state: nodes, storage, ingress, leftovers and foreign pods."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import timedelta

from broker.domain.geometry.host_resources import HostResources, exceeded_fields, format_cpus, format_size
from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.client.pod_requests import Amounts, add_amounts, node_owner, pod_requests
from broker.provisioners.kubernetes.client.quantities import ZERO
from broker.provisioners.kubernetes.doctor.findings import CheckResult, ClusterCheck, bad, list_some, ok, unknown, warn
from broker.provisioners.kubernetes.doctor.gpu_checks import gpu_nodes
from broker.provisioners.kubernetes.doctor.snapshot import ClusterSnapshot, UnreadablePart, require_readable
from broker.provisioners.kubernetes.drivers.discovered_inventory import NO_FOREIGN_USAGE, ForeignNodeUsage
from broker.provisioners.kubernetes.drivers.node_resources import CPU, MEMORY, node_resources
from broker.provisioners.kubernetes.tolerations import is_tolerated

DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
SILENT_AFTER = timedelta(minutes=1)
STUCK_AFTER = timedelta(minutes=5)
TRANSIENT_TAINTS = ("node.kubernetes.io/", labels.DOMAIN)  # taints that are set and removed automatically
NAMESPACES_FIX = (
    "Enter the namespaces of the ingress controller, gateway and SSH bastion: `Allowed namespaces` in the"
    " cluster's `Access` settings."
)
LEAST_OF_A_GPU = HostResources(cpu_milli=1000, memory_mib=2048)
SYSTEM_NAMESPACES = ("kube-system", "gpu-operator", "nvidia", "nvidia-gpu-operator")


def _check_nodes_ready(s: ClusterSnapshot) -> CheckResult:
    nodes = require_readable(s.nodes)
    conditions = {node.metadata.name: node.condition("Ready") for node in nodes}
    sick = [name for name, ready in conditions.items() if ready is None or not ready.holds]
    if sick:
        return warn(
            f"not ready: {list_some(sick)}",
            "Check the kubelets of these nodes. Nothing is sold there until they are ready.",
        )
    return (
        ok(f"all {len(nodes)} nodes are ready")
        if nodes
        else bad("the cluster has no nodes", "Add nodes to the cluster.")
    )


def _check_heartbeats(s: ClusterSnapshot) -> CheckResult:
    reported = require_readable(s.heartbeats)
    machines = [node.metadata.name for node in gpu_nodes(s)]
    if silent := [name for name in machines if name not in reported]:
        return bad(
            f"no Lease object in kube-node-lease for {list_some(silent)}",
            "Check the kubelets: they renew it every ten seconds. Without it, the end of a lost lease is unknown.",
        )
    if late := [name for name in machines if s.now - reported[name] > SILENT_AFTER]:
        return warn(f"no heartbeat for over a minute: {list_some(late)}", "Check these nodes.")
    return ok(f"{len(machines)} GPU nodes send heartbeats")


def _check_taints(s: ClusterSnapshot) -> CheckResult:
    tainted = {
        f"{node.metadata.name} ({taint.key})"
        for node in gpu_nodes(s)
        for taint in node.spec.taints
        if not taint.key.startswith(TRANSIENT_TAINTS) and not is_tolerated(taint, s.tolerations)
    }
    if tainted:
        return warn(
            f"taints keep leases off {list_some(tainted)}",
            "Remove the taint, or add it to `Tolerations` in the cluster's `Access` settings. Nothing is sold there"
            " until then.",
        )
    return ok("no taint keeps leases off a GPU node")


def _check_cordoned(s: ClusterSnapshot) -> CheckResult:
    if cordoned := [node.metadata.name for node in gpu_nodes(s) if node.spec.unschedulable]:
        return warn(
            f"cordoned: {list_some(cordoned)}",
            "Run kubectl uncordon on nodes that should be sold. Nothing is sold there until then.",
        )
    return ok("no GPU node is cordoned")


def _check_node_resources(s: ClusterSnapshot) -> CheckResult:
    used = _daemon_set_usage(s)
    there = {
        node.metadata.name: node_resources(node, used.get(node.metadata.name, NO_FOREIGN_USAGE))
        for node in require_readable(s.nodes)
    }
    machines = [found for found in require_readable(s.inventory) if found.gpus and found.name in there]
    shares = {found.name: there[found.name].share(1, 1, gpus=len(found.gpus)) for found in machines}
    if poor := [name for name, share in shares.items() if exceeded_fields(LEAST_OF_A_GPU, share)]:
        return warn(
            f"less than 1 CPU or 2 GiB memory for each GPU: {list_some(poor)}",
            "Use machines with more CPU and memory. Offerings of this GPU model and region bring no more than their"
            " smallest node has.",
        )
    if silent := [name for name, share in shares.items() if not (share.cpu_milli and share.memory_mib)]:
        return unknown(f"no allocatable CPU or memory: {list_some(silent)}", "Check the kubelets of these nodes.")
    return ok(f"{len(shares)} GPU nodes have CPU and memory for each GPU{_describe_daemon_sets(shares, used)}")


def _daemon_set_usage(s: ClusterSnapshot) -> dict[str, ForeignNodeUsage]:
    """Return what daemon sets and static pods request, by node."""
    amounts: dict[str, Amounts] = defaultdict(dict)
    for pod in () if isinstance(s.pods, UnreadablePart) else s.pods:
        if node_owner(pod.metadata):
            add_amounts(amounts[pod.spec.node_name], pod_requests(pod.spec))
    return {node: ForeignNodeUsage(daemon_sets=its) for node, its in amounts.items()}


def _describe_daemon_sets(machines: Iterable[str], used: Mapping[str, ForeignNodeUsage]) -> str:
    """Return the most that daemon sets request on one node, in words."""
    most = max(machines, key=lambda name: used[name].daemon_sets.get(CPU, ZERO) if name in used else ZERO, default="")
    if most not in used:
        return ""
    its = used[most].daemon_sets
    cpus, memory = format_cpus(int(its.get(CPU, ZERO) * 1000)), format_size(int(its.get(MEMORY, ZERO) / 2**20))
    return f"; daemon sets and static pods request up to {cpus} CPUs and {memory} memory ({most})"


def _check_storage(s: ClusterSnapshot) -> CheckResult:
    classes = require_readable(s.storage_classes)
    marked = [
        each["metadata"]["name"]
        for each in classes
        if each["metadata"].get("annotations", {}).get(DEFAULT_CLASS) == "true"
    ]
    if not marked:
        return warn(
            "no default StorageClass", f"Annotate one with {DEFAULT_CLASS}=true. Volumes stay pending until then."
        )
    if len(marked) > 1:
        return warn(
            f"more than one default: {list_some(marked)}",
            "Keep one default StorageClass. Otherwise the newest is used.",
        )
    return ok(marked[0])


def _check_ingress(s: ClusterSnapshot) -> CheckResult:
    if any(each.startswith("gateway.networking.k8s.io/") for each in require_readable(s.groups)):
        return ok("Gateway API is installed")
    if classes := [each["metadata"]["name"] for each in require_readable(s.ingress_classes)]:
        return ok(f"Ingress classes: {list_some(classes)}")
    return warn(
        "neither a Gateway API nor an IngressClass", "Install one of them. Links to leases do not work until then."
    )


def _check_allowed_namespaces(s: ClusterSnapshot) -> CheckResult:
    """Check that the namespaces leases admit traffic from exist and run the ingress.

    Otherwise people would be shown links that lead nowhere.
    """
    if not s.allowed_namespaces:
        return ok("no access is configured")
    there = {each["metadata"]["name"] for each in require_readable(s.namespaces)}
    if missing := [each for each in s.allowed_namespaces if each not in there]:
        return bad(f"allowed namespaces do not exist: {list_some(missing)}", NAMESPACES_FIX)
    kind, _, name = s.ingress.partition("/")
    classes = (
        [each["metadata"]["name"] for each in require_readable(s.ingress_classes)] if kind == "ingress" else [name]
    )
    if name not in classes:
        return bad(
            f"IngressClass {name} does not exist", "Correct `Ingress` in the `Access` settings, or install the class."
        )
    inside = [pod for pod in require_readable(s.pods) if pod.metadata.namespace in s.allowed_namespaces]
    if empty := set(s.allowed_namespaces) - {pod.metadata.namespace for pod in inside}:
        return warn(f"no pods run in the allowed namespaces {list_some(empty)}", NAMESPACES_FIX)
    if bare := [pod.metadata.name for pod in inside if pod.spec.host_network]:
        return warn(
            f"{list_some(bare)} use the host network; network policies often cannot identify them",
            "If links do not work, run them without hostNetwork: policies identify pods by namespace.",
        )
    return ok(f"allowed: {list_some(s.allowed_namespaces)}")


def _check_leftovers(s: ClusterSnapshot) -> CheckResult:
    there = frozenset(require_readable(s.ours))
    if s.accounted is None:
        reported = f"objects of {len(there)} leases exist"
        return (
            unknown(reported, "Name the registered cluster instead of a kubeconfig.")
            if there
            else ok("no objects of leases exist")
        )
    if left := there - s.accounted:
        return warn(
            f"objects without a lease: {list_some(left)}",
            "The broker removes them within minutes. If they stay, check its log.",
        )
    return ok(f"{len(there)} leases, all known to the broker")


def _check_held_pods(s: ClusterSnapshot) -> CheckResult:
    """Find ended pods that we have not released for five minutes.

    A pod is released as soon as its end is recorded.
    """
    held = require_readable(s.ours)
    if late := [name for name, since in held.items() if since and s.now - since > STUCK_AFTER]:
        return warn(
            f"pods of {list_some(late)} ended over five minutes ago and still have a finalizer",
            "Check that workers run and that the broker may patch pods; `manage.py kube_setup` restores its rights."
            " To retire a cluster, run `manage.py kube_setup --remove`.",
        )
    return ok("no ended pod keeps its finalizer")


def _check_namespaces(s: ClusterSnapshot) -> CheckResult:
    ending = [
        each["metadata"]["name"]
        for each in require_readable(s.namespaces)
        if each.get("status", {}).get("phase") == "Terminating"
    ]
    ours = [name for name in ending if name.startswith("gt-")]
    if ours:
        return bad(
            f"stuck in Terminating: {list_some(ours)}",
            "Run `kubectl get namespace NAME -o yaml`. Its conditions name the cause, usually a finalizer.",
        )
    return (
        warn(f"stuck in Terminating: {list_some(ending)}", "Check their conditions.") if ending else ok("none is stuck")
    )


def _check_foreign_pods(s: ClusterSnapshot) -> CheckResult:
    """Find pods of others that use GPUs which we believe to be free."""
    machines = {node.metadata.name for node in gpu_nodes(s)}
    others = [
        f"{pod.metadata.namespace}/{pod.metadata.name}"
        for pod in require_readable(s.pods)
        if pod.wants_gpus
        and pod.spec.node_name in machines
        and pod.status.phase in ("Pending", "Running")
        and pod.metadata.labels.get(labels.MANAGED_BY) != labels.MANAGER_NAME
        and pod.metadata.namespace not in SYSTEM_NAMESPACES
    ]
    if others:
        return warn(
            f"{list_some(others)} use GPUs without a lease",
            "They keep running, and what they hold is not sold. Move them to other nodes to sell it.",
        )
    return ok("no other pods use GPUs")


CHECKS = (
    ClusterCheck("nodes-ready", "Only ready nodes are sold.", _check_nodes_ready),
    ClusterCheck("heartbeats", "A lost lease is charged up to its node's last heartbeat.", _check_heartbeats),
    ClusterCheck("cordoned", "A cordoned node takes no new pods.", _check_cordoned),
    ClusterCheck("taints", "A taint keeps pods of leases from starting.", _check_taints),
    ClusterCheck("node-resources", "A lease needs CPU and memory beside its GPU.", _check_node_resources),
    ClusterCheck("storage", "Volumes need a StorageClass.", _check_storage),
    ClusterCheck("ingress", "Links to Jupyter and endpoints need an ingress.", _check_ingress),
    ClusterCheck("allowed-namespaces", "Leases accept traffic from these only.", _check_allowed_namespaces),
    ClusterCheck("leftovers", "Objects without a lease use capacity that is not billed.", _check_leftovers),
    ClusterCheck(
        "held-pods",
        "A pod is kept until its end is recorded; if kept longer, its slice stays in use.",
        _check_held_pods,
    ),
    ClusterCheck("namespaces", "Nothing can start in a terminating namespace.", _check_namespaces),
    ClusterCheck("foreign-pods", "GPUs used by other pods cannot be sold.", _check_foreign_pods),
)
