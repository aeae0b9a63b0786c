"""A lease as its provisioner sees it."""

from broker.models import Allocation, Lease
from broker.provisioners.base import Order, Slice, order_name


def order_of(lease: Lease) -> Order:
    """Load what the provisioner must know of the lease's present generation; one query."""
    held = (
        Allocation.objects.filter(lease=lease, released_at=None)
        .select_related("gpu")
        .order_by("gpu_id", "placement")
    )
    return Order(
        name=order_name(lease.pk, lease.generation),
        lease_id=lease.pk,
        generation=lease.generation,
        placed_at=lease.at,
        image=lease.image,
        command=lease.command,
        slices=tuple(
            Slice(
                a.gpu.node_id, a.gpu_id, a.profile, a.placement.lower, a.placement.upper - a.placement.lower
            )
            for a in held
        ),
    )
