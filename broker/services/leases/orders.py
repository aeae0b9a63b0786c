"""A lease as its provisioner sees it."""

from datetime import timedelta

from django.conf import settings
from django.utils.crypto import salted_hmac

from broker.domain.gpu_models import NOTIONAL_GRID
from broker.models import Allocation, Lease
from broker.provisioners.base import Kept, Order, Slice, order_name
from broker.services.leases import growing

TOKEN_LENGTH = 40


def order_of(lease: Lease, *, generation: int | None = None) -> Order:
    """Load what the provisioner must know of a generation of a lease, the present one unless told; one query."""
    generation = generation or lease.generation
    held = list(
        Allocation.objects.filter(lease=lease, generation=generation, released_at=None)
        .select_related("gpu__node__cluster", "gpu__gpu_model")
        .order_by("gpu_id", "placement")
    )
    cluster = held[0].gpu.node.cluster if held else None
    soon = timedelta(seconds=settings.PROVISION_TIMEOUT_S)  # its time runs from when it is active
    return Order(
        name=order_name(lease.pk, generation),
        lease_id=lease.pk,
        generation=generation,
        placed_at=lease.at,
        image=lease.image,
        command=lease.command,
        workload=lease.workload,
        env=tuple(sorted(lease.env.items())),
        ssh_keys=tuple(lease.ssh_keys),
        access_token=access_token(lease.pk),
        slices=tuple(_slice(each) for each in held),
        cluster=cluster.pk if cluster else "",
        domain=cluster.domain if cluster else "",
        door=cluster.door if cluster else "",
        frozen=cluster.frozen if cluster else "",
        provisioner=cluster.provisioner if cluster else "",
        tenant_id=lease.tenant_id,
        project_id=lease.project_id,
        gpu_model=lease.offering.gpu_model_id,
        profile=lease.offering.profile,
        isolation=lease.offering.isolation,
        price_class=lease.offering.price_class,
        volume=_kept(lease),
        paid_until=lease.ends_at or growing.end_of(lease, lease.at + soon),
    )


def _kept(lease: Lease) -> Kept | None:
    if lease.volume is None:
        return None
    return Kept(lease.volume.pk, lease.volume.size_gib, lease.tenant_id, lease.project_id)


def _slice(held: Allocation) -> Slice:
    gpu, start = held.gpu, held.placement.lower
    return Slice(
        gpu.node_id,
        gpu.pk,
        held.profile,
        start,
        held.placement.upper - start,
        host=gpu.node.name,
        uuid=gpu.uuid,
        grid=gpu.gpu_model.memory_grid or NOTIONAL_GRID,
        memory_gb=gpu.gpu_model.memory_gb,
    )


def access_token(lease_id: str) -> str:
    """Return the secret that opens a lease's page: always the same, so that it is kept nowhere."""
    return salted_hmac("gpubroker.lease.access", lease_id, algorithm="sha256").hexdigest()[:TOKEN_LENGTH]
