"""Observations from nodes: a silent node outweighs its pods' last status."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from broker.provisioners.base import Observation, ObservedState
from broker.provisioners.kubernetes.client.objects import ClusterNode, ObservedPod

STUCK_AFTER = timedelta(minutes=5)
SOON_S, LATER_S = 0.5, 5.0


def find_lost_node(
    hosts: Iterable[str], nodes: Mapping[str, ClusterNode], heartbeats: Mapping[str, datetime]
) -> Observation | None:
    """Return an observation of the first lost node and its last heartbeat.

    None when all nodes are well.
    """
    for host in sorted(hosts):
        node = nodes.get(host)
        if node is None:
            text = f"node {host} is no longer in the cluster"
            last = heartbeats.get(host)
            return Observation(ObservedState.LOST, text, last_seen=last, proven_until=last)
        ready = node.condition("Ready")
        if ready is not None and ready.status == "Unknown":
            last = heartbeats.get(host) or ready.last_heartbeat_time or ready.last_transition_time
            text = f"node {host} is unreachable"
            return Observation(ObservedState.LOST, text, last_seen=last, proven_until=last, node_unreachable=True)
    return None


def observe_shutdown(pods: Sequence[ObservedPod], *, now: datetime) -> Observation:
    """Return the progress of a shutdown; capacity stays held until all pods are gone."""
    marked = (pod.metadata.deletion_timestamp for pod in pods)
    since = min((moment for moment in marked if moment), default=now)
    if now - since < STUCK_AFTER:
        return Observation(ObservedState.PENDING, "shutting down", again_in_s=SOON_S)
    minutes = int((now - since).total_seconds() // 60)
    finalizers = sorted({name for pod in pods for name in pod.metadata.finalizers})
    why = f", held by {', '.join(finalizers)}" if finalizers else ""
    text = f"has been shutting down for {minutes} minutes{why}; its slice stays in use"
    return Observation(ObservedState.PENDING, text, again_in_s=LATER_S)
