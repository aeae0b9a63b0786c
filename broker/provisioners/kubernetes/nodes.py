"""What nodes say about the pods on them: one that fell silent says more than its pods' old words."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from broker.provisioners.base import Observation, Seen
from broker.provisioners.kubernetes.objects import Node, Pod

STUCK_AFTER = timedelta(minutes=5)
SOON_S, LATER_S = 0.5, 5.0


def silent(
    hosts: Iterable[str], nodes: Mapping[str, Node], heartbeats: Mapping[str, datetime]
) -> Observation | None:
    """Tell which of some nodes nobody hears from any more, and when it was heard last; None when all are well."""
    for host in sorted(hosts):
        node = nodes.get(host)
        if node is None:
            text = f"node {host} is no longer in the cluster"
            last = heartbeats.get(host)
            return Observation(Seen.LOST, text, last_seen=last, proven_until=last)
        ready = node.condition("Ready")
        if ready is not None and ready.status == "Unknown":
            last = heartbeats.get(host) or ready.last_heartbeat_time or ready.last_transition_time
            return Observation(Seen.LOST, f"node {host} lost contact", last_seen=last, proven_until=last)
    return None


def shutting_down(pods: Sequence[Pod], *, now: datetime) -> Observation:
    """Say how far the end of a lease is while some of it is there; its places are held until then."""
    marked = (pod.metadata.deletion_timestamp for pod in pods)
    since = min((moment for moment in marked if moment), default=now)
    if now - since < STUCK_AFTER:
        return Observation(Seen.PENDING, "shutting down", again_in_s=SOON_S)
    minutes = int((now - since).total_seconds() // 60)
    finalizers = sorted({name for pod in pods for name in pod.metadata.finalizers})
    why = f", held by {', '.join(finalizers)}" if finalizers else ""
    text = f"has been shutting down for {minutes} minutes{why}; its places stay taken"
    return Observation(Seen.PENDING, text, again_in_s=LATER_S)
