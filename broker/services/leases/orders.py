"""A lease as its provisioner sees it."""

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from django.conf import settings
from django.utils.crypto import salted_hmac

from broker.domain.gpu_models import NOTIONAL_GRID
from broker.domain.placement.warmth import Cutting
from broker.domain.states import Condition, LeaseState
from broker.models import LayoutPolicy, Lease
from broker.provisioners.base import Kept, Order, Slice, order_name
from broker.services.leases import growing
from broker.services.placement.left import how_cut
from ports import database

TOKEN_LENGTH = 40
SIMULATED = "simulated"  # the provisioner that takes its time for what it cuts


# Read at every look at a lease: planned once, where five joins take longer to plan than to run.
HELD = """
SELECT a.gpu_id, a.profile, lower(a.placement), upper(a.placement), g.uuid, m.memory_grid, m.memory_gb,
       COALESCE(g.fixed_layout -> 0 ->> 'asks', ''), n.id, n.name, c.id, c.domain, c.door, c.frozen, c.provisioner,
       g.layout_policy
  FROM broker_allocation a
  JOIN broker_gpu g ON g.id = a.gpu_id
  JOIN broker_gpumodel m ON m.name = g.gpu_model_id
  JOIN broker_node n ON n.id = g.node_id
  JOIN broker_cluster c ON c.id = n.cluster_id
 WHERE a.lease_id = %s AND a.generation = %s::integer AND a.released_at IS NULL
 ORDER BY a.gpu_id, a.placement
"""


class _Held(NamedTuple):
    """What an order tells of one held place."""

    gpu_id: str
    profile: str
    start: int
    end: int
    uuid: str
    grid: int
    memory_gb: int
    asks: str
    node_id: str
    host: str
    cluster: str
    domain: str
    door: str
    frozen: str
    provisioner: str
    policy: str


def order_of(lease: Lease, *, generation: int | None = None) -> Order:
    """Load what the provisioner must know of a generation of a lease, the present one unless told; one query."""
    generation = generation or lease.generation
    with database.prepared() as cursor:
        cursor.execute(HELD, [lease.pk, generation])
        held = [_Held(*row) for row in cursor.fetchall()]
    place = held[0] if held else None
    cuts = _how_cut(lease, held)
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
        slices=tuple(_slice(each, how) for each, how in zip(held, cuts, strict=True)),
        cluster=place.cluster if place else "",
        domain=place.domain if place else "",
        door=place.door if place else "",
        frozen=place.frozen if place else "",
        provisioner=place.provisioner if place else "",
        tenant_id=lease.tenant_id,
        project_id=lease.project_id,
        gpu_model=lease.offering.model,
        profile=lease.offering.profile,
        isolation=lease.offering.isolation,
        price_class=lease.offering.price_class,
        volume=_kept(lease),
        paid_until=lease.ends_at or growing.end_of(lease, lease.at + soon),
        doubted=Condition.UNREACHABLE in lease.conditions,
    )


def _kept(lease: Lease) -> Kept | None:
    if lease.volume is None:
        return None
    return Kept(lease.volume.pk, lease.volume.size_gib, lease.tenant_id, lease.project_id)


def _how_cut(lease: Lease, held: Sequence[_Held]) -> Sequence[Cutting | None]:
    """Return by place what a simulated cluster must do to have it: told once, before it was ever looked at."""
    new = lease.state == LeaseState.PROVISIONING and not lease.progress
    takes_time = settings.SIMULATED_CUT_S or settings.SIMULATED_DESTROY_S
    left = all(each.provisioner == SIMULATED and each.policy == LayoutPolicy.DYNAMIC for each in held)
    if not (new and takes_time and left and held):
        return [None] * len(held)
    places = [(each.gpu_id, each.start) for each in held]
    return how_cut(places, lease.offering.profile, lease.offering.isolation)


def _slice(held: _Held, cutting: Cutting | None) -> Slice:
    return Slice(
        held.node_id,
        held.gpu_id,
        held.profile,
        held.start,
        held.end - held.start,
        host=held.host,
        uuid=held.uuid,
        grid=held.grid or NOTIONAL_GRID,
        memory_gb=held.memory_gb,
        asks=held.asks,
        cutting=cutting,
    )


def access_token(lease_id: str) -> str:
    """Return the secret that opens a lease's page: always the same, so that it is kept nowhere."""
    return salted_hmac("gpubroker.lease.access", lease_id, algorithm="sha256").hexdigest()[:TOKEN_LENGTH]
