"""Why a node takes no new pods of leases: cordon, readiness, taints."""

from collections.abc import Iterable

from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.client.objects import ClusterNode, Taint
from broker.provisioners.kubernetes.tolerations import Toleration, is_tolerated

# Set by Kubernetes together with a condition or a cordon, which say more; or by us while a node is repartitioned.
IMPLIED_TAINTS = ("node.kubernetes.io/unschedulable", "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
MAX_LENGTH = 300


def node_refusal(node: ClusterNode, tolerations: Iterable[Toleration]) -> str:
    """Return why a node takes no new pods; empty if it takes them."""
    if node.spec.unschedulable:
        return "It is cordoned in its cluster; run kubectl uncordon to sell it again."
    ready = node.condition("Ready")
    if ready is not None and not ready.holds:
        detail = ready.message or ready.reason or "its kubelet does not report"
        return f"It is not ready: {detail}"[:MAX_LENGTH]
    known = tuple(tolerations)
    refusing = [taint for taint in node.spec.taints if not _is_implied(taint) and not is_tolerated(taint, known)]
    if refusing:
        names = ", ".join(f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}" for taint in refusing)
        return f"It has the taint {names}; remove it, or add it to the cluster's tolerations."[:MAX_LENGTH]
    return ""


def _is_implied(taint: Taint) -> bool:
    return taint.key in IMPLIED_TAINTS or taint.key.startswith(labels.DOMAIN)
