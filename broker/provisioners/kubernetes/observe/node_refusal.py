"""Why a node takes no new pods of leases: deletion, cordon, readiness, taints."""

from collections.abc import Iterable, Sequence

from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.client.objects import ClusterNode, Taint
from broker.provisioners.kubernetes.tolerations import Toleration, is_tolerated

# Set by Kubernetes together with a condition or a cordon, which say more; or by us while a node is repartitioned.
IMPLIED_TAINTS = ("node.kubernetes.io/unschedulable", "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
MAX_LENGTH = 300
USUAL_ADVICE = "remove it, or add it to the cluster's tolerations"
NODE_GOES = "the node is about to be removed, so nothing new is placed on it"
NODE_STARTS = "the node is still starting; the taint is removed by itself when it is ready"
# Taints that a controller sets and removes by itself, by the beginning of their key. Removing them by hand is useless,
# and pods that tolerate them would be placed where they cannot run or are soon ended.
ADVICE = (
    ("node.kubernetes.io/memory-pressure", "the node is short of memory; end or move pods there"),
    ("node.kubernetes.io/disk-pressure", "the node's disk is almost full; remove images, logs or data there"),
    ("node.kubernetes.io/pid-pressure", "the node has too many processes; end or move pods there"),
    ("node.kubernetes.io/network-unavailable", "the node's network is not set up; check the network plugin there"),
    (
        "node.kubernetes.io/out-of-service",
        "someone declared the node as failed, so its pods are deleted; remove the taint once it runs again",
    ),
    ("node.cloudprovider.kubernetes.io/shutdown", "the machine is shut down; start it, or remove it from the cluster"),
    ("node.cloudprovider.kubernetes.io/uninitialized", NODE_STARTS),
    ("karpenter.sh/unregistered", NODE_STARTS),
    ("node.cilium.io/agent-not-ready", NODE_STARTS),
    ("ebs.csi.aws.com/agent-not-ready", NODE_STARTS),
    ("efs.csi.aws.com/agent-not-ready", NODE_STARTS),
    ("startup-taint.cluster-autoscaler.kubernetes.io/", NODE_STARTS),
    ("karpenter.sh/disrupted", NODE_GOES),
    ("karpenter.sh/disruption", NODE_GOES),
    ("ToBeDeletedByClusterAutoscaler", NODE_GOES),
    ("DeletionCandidateOfClusterAutoscaler", NODE_GOES),
    ("cloud.google.com/impending-node-termination", NODE_GOES),
    ("aws-node-termination-handler/", NODE_GOES),
)


def node_refusal(node: ClusterNode, tolerations: Iterable[Toleration]) -> str:
    """Return why a node takes no new pods; empty if it takes them."""
    if node.metadata.deletion_timestamp is not None:
        return "It is being deleted from its cluster; nothing new is placed on it."
    if node.spec.unschedulable:
        return "It is cordoned in its cluster; run kubectl uncordon to sell it again."
    ready = node.condition("Ready")
    if ready is None:
        return "It is not ready: its kubelet has not reported yet"
    if not ready.holds:
        detail = ready.message or ready.reason or "its kubelet does not report"
        return f"It is not ready: {detail}"[:MAX_LENGTH]
    known = tuple(tolerations)
    refusing = [taint for taint in node.spec.taints if not _is_implied(taint) and not is_tolerated(taint, known)]
    return _explain_taints(refusing) if refusing else ""


def _explain_taints(taints: Sequence[Taint]) -> str:
    names = ", ".join(f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}" for taint in taints)
    known = (advice for taint in taints for key, advice in ADVICE if taint.key.startswith(key))
    advice = next(known, USUAL_ADVICE)
    return f"It has the taint {names[: MAX_LENGTH - len(advice) - 24]}; {advice}."


def _is_implied(taint: Taint) -> bool:
    return taint.key in IMPLIED_TAINTS or taint.key.startswith(labels.DOMAIN)
