"""Watch nodes: a silent or deleted node is lost until it reports again."""

from collections.abc import Callable
from datetime import datetime

import msgspec

from broker.models import Cluster, ClusterObject, Node, NodeState
from broker.provisioners.kubernetes.agent.event_buffer import WatchEvent
from broker.provisioners.kubernetes.client import objects
from broker.provisioners.kubernetes.client.kinds import NODE
from broker.provisioners.kubernetes.client.objects import decode
from broker.provisioners.kubernetes.drivers.hami import REGISTER_ANNOTATION, is_removed
from broker.provisioners.kubernetes.drivers.node_resources import AMOUNTS
from broker.services.clusters.health import node_loss


class NodeWatch:
    """The nodes of one cluster, as its agent observes them."""

    def __init__(self, cluster: Cluster, on_change: Callable[[], None]) -> None:
        self.cluster, self._on_change = cluster, on_change
        self._inventories: dict[str, int] = {}  # by node, of what its inventory depends on

    def see(self, event: WatchEvent, *, now: datetime) -> None:
        """Update node states from an event and report nodes whose inventory may have changed."""
        if event.kind is not NODE or not event.items:
            return
        nodes = [decode(item, objects.ClusterNode) for item in event.items]
        names = [node.metadata.name for node in nodes]
        rows = Node.objects.filter(cluster=self.cluster, name__in=names)
        known = dict(rows.values_list("name", "state"))
        for node in nodes:
            hears = event.how != "DELETED" and _is_node_reporting(node)
            state = known.get(node.metadata.name)
            changed = self._has_changed(node)
            if changed or state is None or event.how in ("ADDED", "PAGED"):
                self._on_change()
            if state is not None and hears == (state == NodeState.LOST):
                node_loss.update_node_state(self.cluster, node.metadata.name, hears=hears, now=now)

    def _has_changed(self, node: objects.ClusterNode) -> bool:
        """Return whether a node's amounts, labels, taints or readiness differ from before."""
        digest = _inventory_digest(node)
        before = self._inventories.get(node.metadata.name)
        self._inventories[node.metadata.name] = digest
        return before != digest

    def check_lost(self, *, now: datetime) -> None:
        """Check lost nodes again: what still ran when they returned may be gone."""
        for name in Node.objects.filter(cluster=self.cluster, state=NodeState.LOST).values_list("name", flat=True):
            known = ClusterObject.objects.filter(cluster=self.cluster, kind="Node", name=name).first()
            if known and _is_node_reporting(msgspec.convert(known.body, objects.ClusterNode)):
                node_loss.update_node_state(self.cluster, name, hears=True, now=now)


def _is_node_reporting(node: objects.ClusterNode) -> bool:
    ready = node.condition("Ready")
    return ready is None or ready.status != "Unknown"


def _inventory_digest(node: objects.ClusterNode) -> int:
    """Return a digest of what a node's inventory and its readiness for pods depend on."""
    ready = node.condition("Ready")
    taints = tuple((taint.key, taint.value, taint.effect) for taint in node.spec.taints)
    amounts = frozenset((name, n) for name, n in node.status.allocatable.items() if "/" in name or name in AMOUNTS)
    return hash(
        (
            node.metadata.deletion_timestamp,
            node.spec.unschedulable,
            ready.status if ready else "",
            taints,
            amounts,
            frozenset(node.metadata.labels.items()),
            node.metadata.annotations.get(REGISTER_ANNOTATION, ""),
            is_removed(node),
        )
    )
