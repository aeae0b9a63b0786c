"""Watch nodes: a silent or deleted node is lost until it reports again."""

from collections.abc import Callable
from datetime import datetime

import msgspec

from broker.models import Cluster, ClusterObject, Node, NodeState
from broker.provisioners.kubernetes.agent.event_buffer import WatchEvent
from broker.provisioners.kubernetes.client import objects
from broker.provisioners.kubernetes.client.kinds import NODE
from broker.provisioners.kubernetes.client.objects import decode
from broker.services.clusters.health import node_loss


class NodeWatch:
    """The nodes of one cluster, as its agent observes them."""

    def __init__(self, cluster: Cluster, on_new: Callable[[], None]) -> None:
        self.cluster, self._on_new = cluster, on_new

    def see(self, event: WatchEvent, *, now: datetime) -> None:
        """Update node states from an event and report possibly new nodes."""
        if event.kind is not NODE or not event.items:
            return
        nodes = [decode(item, objects.ClusterNode) for item in event.items]
        names = [node.metadata.name for node in nodes]
        rows = Node.objects.filter(cluster=self.cluster, name__in=names)
        known = dict(rows.values_list("name", "state"))
        for node in nodes:
            hears = event.how != "DELETED" and _is_node_reporting(node)
            state = known.get(node.metadata.name)
            if state is None or event.how in ("ADDED", "PAGED"):
                self._on_new()
            if state is not None and hears == (state == NodeState.LOST):
                node_loss.update_node_state(self.cluster, node.metadata.name, hears=hears, now=now)

    def check_lost(self, *, now: datetime) -> None:
        """Check lost nodes again: what still ran when they returned may be gone."""
        for name in Node.objects.filter(cluster=self.cluster, state=NodeState.LOST).values_list("name", flat=True):
            known = ClusterObject.objects.filter(cluster=self.cluster, kind="Node", name=name).first()
            if known and _is_node_reporting(msgspec.convert(known.body, objects.ClusterNode)):
                node_loss.update_node_state(self.cluster, name, hears=True, now=now)


def _is_node_reporting(node: objects.ClusterNode) -> bool:
    ready = node.condition("Ready")
    return ready is None or ready.status != "Unknown"
