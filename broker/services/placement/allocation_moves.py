"""Moves of allocations within their GPU, where its cluster chose other slices than placement.

All allocations of a GPU move in one transaction and through an empty range, so they may exchange their places.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.backends.postgresql.psycopg_any import NumericRange
from django.db.models import F

from broker.domain.geometry.profiles import Placement
from broker.models import Allocation, Lease, PromisedSlot
from ports.postgres.sql_statements import query_rows
from tenants.services.rls import tenant_scope

NOWHERE = NumericRange(empty=True)  # overlaps nothing


@dataclass(frozen=True, slots=True)
class AllocationMove:
    """An allocation, with its place in our rows and its real one."""

    allocation: str
    tenant_id: str
    lease_id: str
    before: Placement
    after: Placement


def move_allocations(gpu: str, moves: Sequence[AllocationMove]) -> bool:
    """Move allocations of one GPU; return False if one of them is being changed.

    The caller holds the lock of the GPU, so nobody places anything on it meanwhile.
    """
    by_tenant = defaultdict[str, list[AllocationMove]](list)
    for each in moves:
        by_tenant[each.tenant_id].append(each)
    with transaction.atomic():
        if not all(_take_away(tenant_id, its) for tenant_id, its in sorted(by_tenant.items())):
            transaction.set_rollback(True)
            return False
        for tenant_id, its in sorted(by_tenant.items()):
            with tenant_scope(tenant_id):
                for each in its:
                    place = {"start": each.after.start, "stop": each.after.end, "allocation": each.allocation}
                    query_rows("broker/placement/move_allocation", place)
        _move_promises(gpu, moves)
    return True


def _take_away(tenant_id: str, moves: Sequence[AllocationMove]) -> bool:
    """Take a tenant's allocations off their places; return False if one is locked or released.

    Waiting for a lock could deadlock: whoever releases a place and takes it anew waits for ours.
    """
    ids = [each.allocation for each in moves]
    with tenant_scope(tenant_id):
        held = Allocation.objects.filter(pk__in=ids, released_at=None)
        locked = held.select_for_update(of=("self",), no_key=True, skip_locked=True).values_list("pk", flat=True)
        if len(locked) < len(ids):
            return False
        held.update(placement=NOWHERE)
    return True


def _move_promises(gpu: str, moves: Sequence[AllocationMove]) -> None:
    """Move promised slots with the one allocation that will free them.

    A promise that covers anything else stays: its reclaim is withdrawn if another lease holds the slot.
    """
    after = {each.before: each.after for each in moves}
    promises = {each.pk: placement_of(each.placement) for each in PromisedSlot.objects.filter(gpu=gpu)}
    follow = {pk: after[place] for pk, place in promises.items() if place in after}
    staying = [place for pk, place in promises.items() if pk not in follow]
    if any(place.overlaps(other) for place in follow.values() for other in staying):
        return
    PromisedSlot.objects.filter(pk__in=follow).update(placement=NOWHERE)
    for pk, place in follow.items():
        PromisedSlot.objects.filter(pk=pk).update(placement=NumericRange(place.start, place.end, "[)"))


def placement_of(stored: NumericRange) -> Placement:
    """Return the placement that a row stores as a range."""
    return Placement(stored.lower, stored.upper - stored.lower)


def raise_lease_versions(moves: Sequence[AllocationMove]) -> None:
    """Raise the versions of moved leases, whose tenants see their places.

    In transactions of its own: a relocation locks its lease before the GPU.
    """
    for tenant_id, lease_id in sorted({(each.tenant_id, each.lease_id) for each in moves}):
        with tenant_scope(tenant_id):
            Lease.objects.filter(pk=lease_id).update(version=F("version") + 1)
