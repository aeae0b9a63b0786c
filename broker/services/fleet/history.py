"""What happened to a node, a card or a lease, newest first. Must run as staff."""

from django.db.models import Q

from broker.models import Allocation, Gpu, InventoryChange, Lease, Node, Transition

LATELY = 20


def leases_on(gpu: Gpu) -> list[Allocation]:
    """Return the latest holds of a card's places, with lease and tenant."""
    rows = Allocation.objects.filter(gpu=gpu).select_related("lease__offering", "tenant")
    return list(rows.order_by("-held_at", "-id")[:LATELY])


def changes_of(node: Node, gpu: Gpu | None = None) -> list[InventoryChange]:
    """Return the latest changes of a node and its cards, or of one card and the node under it."""
    which = Q(node=node) if gpu is None else Q(gpu=gpu) | Q(node=node, gpu=None)
    rows = InventoryChange.objects.filter(which).select_related("node", "gpu")
    return list(rows.order_by("-at", "-id")[:LATELY])


def steps_of(lease: Lease) -> list[Transition]:
    """Return a lease's chain from its first step to its last."""
    return list(Transition.objects.filter(lease_id=lease.pk).order_by("seq"))
