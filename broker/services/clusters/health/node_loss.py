"""Node loss and recovery in real clusters.

A silent node is lost at once; it is sold again only when no pod of an earlier lease runs there.
"""

from collections.abc import Collection
from datetime import datetime

from django.db import transaction

from broker.models import Cluster, ClusterObject, InventoryChange, Lease, Node, NodeState
from broker.provisioners.base import spec_name
from broker.services.inventory import hardware
from tenants.services.actors import SYSTEM
from tenants.services.rls import system_scope


@transaction.atomic
def update_node_state(cluster: Cluster, name: str, *, hears: bool, now: datetime) -> None:
    """Update a node's state to match its cluster; states set by operators stay.

    The row is locked, so that nobody cordons it between our check and our update.
    """
    rows = Node.objects.select_for_update(of=("self",)).select_related("cluster")
    node = rows.filter(cluster=cluster, name=name).first()
    if node is None:
        return
    if not hears and node.state != NodeState.LOST:
        reason = "it sends no heartbeats"
        hardware.set_node_state(node, NodeState.LOST, reason=reason, actor=SYSTEM, now=now)
    elif hears and node.state == NodeState.LOST and not specs_without_lease(cluster, name):
        reason = "it sends heartbeats again, and no old pods run on it"
        hardware.set_node_state(node, _state_before_loss(node), reason=reason, actor=SYSTEM, now=now)


def _state_before_loss(node: Node) -> NodeState:
    """Return a lost node's earlier state, or LOST if a person marked it lost."""
    changes = InventoryChange.objects.filter(node=node, gpu=None, after=NodeState.LOST)
    last = changes.order_by("id").last()
    return NodeState(last.before) if last and last.actor_label == SYSTEM.label else NodeState.LOST


def specs_without_lease(cluster: Cluster, node: str) -> Collection[str]:
    """Return the provision specs with pods on a node but no lease."""
    pods = ClusterObject.objects.filter(cluster=cluster, kind="Pod", body__spec__nodeName=node)
    there = set(pods.exclude(spec_name="").values_list("spec_name", flat=True))
    with system_scope():
        held = Lease.objects.holding().values_list("id", "generation")
        return there - {spec_name(lease_id, generation) for lease_id, generation in held}
