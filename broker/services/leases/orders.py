"""A lease as its provisioner sees it."""

from datetime import timedelta
from typing import Any, NamedTuple

from django.conf import settings
from django.utils.crypto import salted_hmac

from broker.domain.gpu_models import NOTIONAL_GRID
from broker.models import Allocation, Lease
from broker.provisioners.base import Kept, Order, Slice, order_name
from broker.services.leases import growing

TOKEN_LENGTH = 40


class _Held(NamedTuple):
    """What an order tells of one held place: an order is written at every look, and rows are cheaper than models."""

    gpu_id: str
    profile: str
    placement: Any
    gpu__uuid: str
    gpu__node_id: str
    gpu__node__name: str
    gpu__gpu_model__memory_grid: int | None
    gpu__gpu_model__memory_gb: int
    gpu__node__cluster_id: str
    gpu__node__cluster__domain: str
    gpu__node__cluster__door: str
    gpu__node__cluster__frozen: str
    gpu__node__cluster__provisioner: str


def order_of(lease: Lease, *, generation: int | None = None) -> Order:
    """Load what the provisioner must know of a generation of a lease, the present one unless told; one query."""
    generation = generation or lease.generation
    held = [
        _Held(*row)
        for row in Allocation.objects.filter(lease=lease, generation=generation, released_at=None)
        .order_by("gpu_id", "placement")
        .values_list(*_Held._fields)
    ]
    cluster = held[0] if held else None
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
        cluster=cluster.gpu__node__cluster_id if cluster else "",
        domain=cluster.gpu__node__cluster__domain if cluster else "",
        door=cluster.gpu__node__cluster__door if cluster else "",
        frozen=cluster.gpu__node__cluster__frozen if cluster else "",
        provisioner=cluster.gpu__node__cluster__provisioner if cluster else "",
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


def _slice(held: _Held) -> Slice:
    start = held.placement.lower
    return Slice(
        held.gpu__node_id,
        held.gpu_id,
        held.profile,
        start,
        held.placement.upper - start,
        host=held.gpu__node__name,
        uuid=held.gpu__uuid,
        grid=held.gpu__gpu_model__memory_grid or NOTIONAL_GRID,
        memory_gb=held.gpu__gpu_model__memory_gb,
    )


def access_token(lease_id: str) -> str:
    """Return the secret that opens a lease's page: always the same, so that it is kept nowhere."""
    return salted_hmac("gpubroker.lease.access", lease_id, algorithm="sha256").hexdigest()[:TOKEN_LENGTH]
