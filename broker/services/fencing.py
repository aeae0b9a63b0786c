"""Nodes of a real cluster that fall silent and come back: lost at once, sold again only when nothing old runs there."""

from collections.abc import Collection
from datetime import datetime

from django.db import transaction

from broker.models import Cluster, ClusterObject, InventoryChange, Lease, Node, NodeState
from broker.provisioners.base import order_name
from broker.services import inventory
from tenants.services.actors import SYSTEM
from tenants.services.walls import as_sweep


@transaction.atomic
def follow_node(cluster: Cluster, name: str, *, hears: bool, now: datetime) -> None:
    """Bring a node's state in line with what its cluster hears of it; what operators decided stands.

    The row is locked, so that nobody cordons it between our look and our word.
    """
    rows = Node.objects.select_for_update(of=("self",)).select_related("cluster")
    node = rows.filter(cluster=cluster, name=name).first()
    if node is None:
        return
    if not hears and node.state != NodeState.LOST:
        reason = "the cluster no longer hears from it"
        inventory.set_node_state(node, NodeState.LOST, reason=reason, actor=SYSTEM, now=now)
    elif hears and node.state == NodeState.LOST and not left_over(cluster, name):
        reason = "the cluster hears from it again, and nothing old runs on it"
        inventory.set_node_state(node, _as_it_was(node), reason=reason, actor=SYSTEM, now=now)


def _as_it_was(node: Node) -> NodeState:
    """Return what a lost node was before it fell silent; one that a person gave up stays lost until a person's word."""
    changes = InventoryChange.objects.filter(node=node, gpu=None, after=NodeState.LOST)
    last = changes.order_by("id").last()
    return NodeState(last.before) if last and last.actor_label == SYSTEM.label else NodeState.LOST


def left_over(cluster: Cluster, node: str) -> Collection[str]:
    """Name the orders whose pods were seen on a node though no lease accounts for them any more."""
    pods = ClusterObject.objects.filter(cluster=cluster, kind="Pod", body__spec__nodeName=node)
    there = set(pods.exclude(order_name="").values_list("order_name", flat=True))
    with as_sweep():
        held = Lease.objects.holding().values_list("id", "generation")
        return there - {order_name(lease_id, generation) for lease_id, generation in held}
