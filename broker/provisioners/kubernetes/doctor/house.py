"""Is the house in order: nodes that live, room for volumes, a door, nothing left behind?"""

from datetime import timedelta

from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.doctor.cards import gpu_nodes
from broker.provisioners.kubernetes.doctor.findings import Answer, Check, bad, names, ok, unknown, warn
from broker.provisioners.kubernetes.doctor.snapshot import Snapshot, seen

DEFAULT = "storageclass.kubernetes.io/is-default-class"
SILENT = timedelta(minutes=1)
STUCK = timedelta(minutes=5)
BY_NODES = ("node.kubernetes.io/", labels.DOMAIN)  # taints that come and go by themselves
TELL = (
    "Name the namespaces of what routes people (ingress controller, gateway, SSH bastion): `From namespaces` in the"
    " cluster's `Ways in`."
)
SYSTEM = ("kube-system", "gpu-operator", "nvidia", "nvidia-gpu-operator")


def _ready(s: Snapshot) -> Answer:
    nodes = seen(s.nodes)
    conditions = {node.metadata.name: node.condition("Ready") for node in nodes}
    sick = [name for name, ready in conditions.items() if ready is None or not ready.holds]
    if sick:
        return warn(f"not ready: {names(sick)}", "Look at their kubelets; nothing is sold there until then.")
    return ok(f"all {len(nodes)}") if nodes else bad("the cluster has no nodes", "Add nodes.")


def _heartbeats(s: Snapshot) -> Answer:
    said = seen(s.heartbeats)
    machines = [node.metadata.name for node in gpu_nodes(s)]
    if silent := [name for name in machines if name not in said]:
        return bad(
            f"no lease in kube-node-lease of {names(silent)}",
            "Kubelets renew it every ten seconds; without it the end of a lost lease cannot be told.",
        )
    if late := [name for name in machines if s.now - said[name] > SILENT]:
        return warn(f"silent for over a minute: {names(late)}", "Look at these nodes.")
    return ok(f"{len(machines)} nodes with cards are heard")


def _taints(s: Snapshot) -> Answer:
    tainted = {
        f"{node.metadata.name} ({taint.key})"
        for node in gpu_nodes(s)
        for taint in node.spec.taints
        if taint.effect in ("NoSchedule", "NoExecute") and not taint.key.startswith(BY_NODES)
    }
    if tainted:
        return warn(
            f"nothing of ours is let on {names(tainted)}",
            "Remove the taint from nodes that are to be sold, or cordon them here.",
        )
    return ok("no taint keeps leases out")


def _storage(s: Snapshot) -> Answer:
    classes = seen(s.storage_classes)
    marked = [
        each["metadata"]["name"]
        for each in classes
        if each["metadata"].get("annotations", {}).get(DEFAULT) == "true"
    ]
    if not marked:
        return warn("no default StorageClass", f"Annotate one with {DEFAULT}=true, or volumes wait for ever.")
    if len(marked) > 1:
        return warn(f"{names(marked)} are all default", "Leave the mark on one: the newest wins by chance.")
    return ok(marked[0])


def _door(s: Snapshot) -> Answer:
    if any(each.startswith("gateway.networking.k8s.io/") for each in seen(s.groups)):
        return ok("a Gateway API")
    if classes := [each["metadata"]["name"] for each in seen(s.ingress_classes)]:
        return ok(f"Ingress by {names(classes)}")
    return warn(
        "neither a Gateway API nor an IngressClass", "Install one: links to leases lead nowhere until then."
    )


def _entrances(s: Snapshot) -> Answer:
    """Find whether people come from where leases are open to: else links are shown that lead to nothing."""
    if not s.entrances:
        return ok("nobody was said to come in")
    there = {each["metadata"]["name"] for each in seen(s.namespaces)}
    if missing := [each for each in s.entrances if each not in there]:
        return bad(f"leases are open to people from {names(missing)}, which is not there", TELL)
    kind, _, name = s.door.partition("/")
    classes = [each["metadata"]["name"] for each in seen(s.ingress_classes)] if kind == "ingress" else [name]
    if name not in classes:
        return bad(
            f"no IngressClass is called {name}",
            "Correct `Routed by` in its `Ways in`, or install that class.",
        )
    inside = [pod for pod in seen(s.pods) if pod.metadata.namespace in s.entrances]
    if empty := set(s.entrances) - {pod.metadata.namespace for pod in inside}:
        return warn(f"nothing runs in {names(empty)}, from where people shall come", TELL)
    if bare := [pod.metadata.name for pod in inside if pod.spec.host_network]:
        return warn(
            f"{names(bare)} run in their node's network, where most networks take them for their node",
            "If links lead nowhere, run them without hostNetwork: policies tell pods by their namespace.",
        )
    return ok(f"from {names(s.entrances)}")


def _leftovers(s: Snapshot) -> Answer:
    there = frozenset(seen(s.ours))
    if s.accounted is None:
        said = f"{len(there)} leases have objects here"
        return (
            unknown(said, "Ask for the registered cluster by its name.") if there else ok("nothing of ours")
        )
    if left := there - s.accounted:
        return warn(
            f"{names(left)} belong to no lease",
            "The broker removes them by itself within minutes; look at its log if they stay.",
        )
    return ok(f"{len(there)} leases, all in our books")


def _held(s: Snapshot) -> Answer:
    """Find what ended long ago and waits for us to let it go: we do that as soon as its end is written down."""
    held = seen(s.ours)
    if late := [name for name, since in held.items() if since and s.now - since > STUCK]:
        return warn(
            f"pods of {names(late)} are over and were not let go for five minutes",
            "Look whether workers run, and whether the broker may patch pods: `manage.py kube_setup` gives it its"
            " rights anew. Of a cluster that is given up, `manage.py kube_setup --remove` takes everything away.",
        )
    return ok("nothing waits to be let go")


def _terminating(s: Snapshot) -> Answer:
    ending = [
        each["metadata"]["name"]
        for each in seen(s.namespaces)
        if each.get("status", {}).get("phase") == "Terminating"
    ]
    ours = [name for name in ending if name.startswith("gt-")]
    if ours:
        return bad(
            f"{names(ours)} cannot end",
            "See `kubectl get namespace NAME -o yaml`: its conditions name what holds it, mostly a finalizer.",
        )
    return warn(f"{names(ending)} cannot end", "See their conditions.") if ending else ok("none is stuck")


def _strangers(s: Snapshot) -> Answer:
    """Find pods that take cards the books take for free."""
    machines = {node.metadata.name for node in gpu_nodes(s)}
    others = [
        f"{pod.metadata.namespace}/{pod.metadata.name}"
        for pod in seen(s.pods)
        if pod.wants_cards
        and pod.spec.node_name in machines
        and pod.status.phase in ("Pending", "Running")
        and pod.metadata.labels.get(labels.MANAGED_BY) != labels.US
        and pod.metadata.namespace not in SYSTEM
    ]
    if others:
        return warn(
            f"{names(others)} hold cards without a lease",
            "Move them to nodes of their own, or cordon these nodes here: what they hold cannot be sold.",
        )
    return ok("every card is free for leases")


CHECKS = (
    Check("nodes-ready", "Only nodes that live are sold.", _ready),
    Check("heartbeats", "A lost lease is charged up to its node's last heartbeat.", _heartbeats),
    Check("taints", "A pod that is not let on its node never starts.", _taints),
    Check("storage", "Volumes outlive leases; something must keep them.", _storage),
    Check("door", "People reach Jupyter and endpoints by a link.", _door),
    Check("entrances", "A lease is closed to everything but where people come from.", _entrances),
    Check("leftovers", "What belongs to no lease costs and is paid by nobody.", _leftovers),
    Check("held", "A pod stays until we know when it ended; one that stays longer holds up others.", _held),
    Check("namespaces", "In a namespace that is ending nothing can start.", _terminating),
    Check("strangers", "What others hold cannot be sold.", _strangers),
)
