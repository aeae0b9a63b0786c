"""Starvation guard of the queue: reserves GPUs for leases that have waited too long.

GPUs are also reserved for leases for which others are being relocated.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from broker.domain.lifecycle.states import Isolation
from broker.models import Offering, RelocationPlan
from broker.services.placement.available_capacity import max_when_empty
from broker.services.placement.gpu_index import DEDICATED
from broker.services.placement.placement_gpus import PoolKey
from broker.services.placement.slot_search import PlacementRequest
from broker.services.queue.gpu_reservations import ReservedGpus
from ports.postgres.sql_statements import fetch_rows, load_sql, query_rows
from tenants.services.rls import system_scope

BATCH = 5000
# After this GPUs are reserved for it, so that a large gang is placed at last; if none can be, younger leases wait.
MAX_WAIT = timedelta(hours=1)
OVERDUE_TEXT = "which has waited for more than an hour and goes first"
RELOCATION_TEXT = "for which other leases are being moved now"
RequestShape = tuple[str, int, bool, str]  # offering, quantity, same node, topology
TenantRequestShape = tuple[str, str, int, bool, str]  # with the tenant: equal requests fit both or neither


@dataclass(frozen=True)
class QueuedLease:
    """A queued lease, as far as the sweep may see it."""

    lease_id: str
    tenant_id: str
    offering_id: str
    quantity: int
    same_node: bool
    topology: str
    queued_at: datetime
    pending_reason: str
    volume_id: str | None  # may tie it to one cluster, so others do not wait behind it
    generation: int
    isolation: str
    price_class: str

    @property
    def is_plain(self) -> bool:
        """Return whether it takes any slot: no volume, gang, share or second attempt."""
        dedicated = Isolation(self.isolation) in DEDICATED
        return self.quantity == 1 and self.volume_id is None and self.generation == 1 and dedicated

    @property
    def tenant_shape(self) -> TenantRequestShape:
        return self.tenant_id, *self.shape

    @property
    def shape(self) -> RequestShape:
        return self.offering_id, self.quantity, self.same_node, self.topology

    @property
    def placement_request(self) -> PlacementRequest:
        """Return its placement request, for any cluster."""
        offering = Offering.objects.get(pk=self.offering_id)
        return PlacementRequest(offering, self.quantity, self.same_node, self.topology)


class StarvationGuard:
    """GPUs reserved during one run of a queue, oldest lease first."""

    def __init__(self, pool: PoolKey, *, now: datetime) -> None:
        self.kept, self._pool, self._now = ReservedGpus(), pool, now
        self._impossible = set[RequestShape]()
        # Leases that others are relocated for, with the GPUs; loaded when the first lease finds no slot.
        self._rooms: dict[str, frozenset[str]] | None = None

    def keep(self, entry: QueuedLease) -> str:
        """Reserve GPUs for a lease that found no slot.

        Returns why all younger leases must wait; empty where they need not.
        """
        if self._rooms is None:
            self._rooms = RelocationPlan.objects.making_room(*self._pool)
        if entry.lease_id in self._rooms:
            self.kept.reserve(
                self._rooms[entry.lease_id], why=_waits_behind_text(entry.placement_request, RELOCATION_TEXT)
            )
        elif _is_overdue(entry, self._now) and entry.shape not in self._impossible | self.kept.shapes:
            request = entry.placement_request
            why = _waits_behind_text(request, OVERDUE_TEXT)
            if not _can_ever_be_placed(request):
                self._impossible.add(entry.shape)
            elif not self.kept.reserve_for(request, entry.shape, why=why, now=self._now):
                return why
        return ""


def reserved_gpus(pools: Collection[PoolKey], *, now: datetime) -> dict[PoolKey, frozenset[str] | None]:
    """Return the reserved GPUs of some pools; None if nothing new is placed there.

    These are the GPUs the next queue run would reserve; everything placeable is already placed.
    """
    pressed = {(model, region) for model, region in query_rows("broker/queue/starving_pools", [now - MAX_WAIT])}
    return {pool: _reserved_in_pool(pool, now) for pool in pressed.intersection(pools)}


def _reserved_in_pool(pool: PoolKey, now: datetime) -> frozenset[str] | None:
    first = StarvationGuard(pool, now=now)
    return None if any(first.keep(entry) for entry in load_queue(pool, now=now)) else first.kept.gpus


def _is_overdue(entry: QueuedLease, now: datetime) -> bool:
    """Return whether it has waited too long for something that others could take."""
    return now - entry.queued_at > MAX_WAIT and not entry.volume_id


def _can_ever_be_placed(request: PlacementRequest) -> bool:
    """Return whether the GPUs in service could hold it if empty.

    Otherwise nobody need wait behind it.
    """
    most = max_when_empty(
        request.offering,
        quantity=request.quantity,
        same_node=request.same_node,
        topology=request.topology,
        in_service=True,
    )
    return most >= request.quantity


def _waits_behind_text(older: PlacementRequest, why: str) -> str:
    return f"Waits behind an older request for {older.quantity} × {older.offering.label}, {why}."


def load_queue(pool: PoolKey, *, upto: str = "", now: datetime | None = None) -> list[QueuedLease]:
    """Return a pool's queue, oldest first: all of it, or up to one lease.

    With `now` without the leases that start later.
    """
    model, region = pool
    wanted = {"model": model, "region": region, "now": now, "limit": BATCH}
    with system_scope():
        queue = [QueuedLease(*row) for row in fetch_rows(load_sql("broker/queue/queued_leases"), wanted)]
    if not upto:
        return queue
    ids = [entry.lease_id for entry in queue]
    return queue[: ids.index(upto) + 1] if upto in ids else []  # it is not queued any more, so nobody needs this run
