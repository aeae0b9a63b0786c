"""History of a node, GPU or lease, newest first. Must run as staff."""

from django.db.models import Q, QuerySet

from broker.models import Allocation, Gpu, InventoryChange, Lease, Node, Transition

MAX_ROWS = 20


def placements_of(gpu: Gpu) -> QuerySet[Allocation]:
    """Return a GPU's placements, newest first, with lease and tenant."""
    rows = Allocation.objects.filter(gpu=gpu).select_related("lease__offering", "tenant")
    return rows.order_by("-held_at", "-id")


def changes_of(node: Node, gpu: Gpu | None = None) -> QuerySet[InventoryChange]:
    """Return the changes of a node and its GPUs, newest first.

    With `gpu`: those of that GPU and of the node itself.
    """
    which = Q(node=node) if gpu is None else Q(gpu=gpu) | Q(node=node, gpu=None)
    rows = InventoryChange.objects.filter(which).select_related("node", "gpu")
    return rows.order_by("-at", "-id")


def transitions_of(lease: Lease) -> list[Transition]:
    """Return a lease's transitions, oldest first."""
    return list(Transition.objects.filter(lease_id=lease.pk).order_by("seq"))
