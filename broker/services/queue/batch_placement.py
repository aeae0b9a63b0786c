"""Batch placement: many single slices of one tenant in one statement and one commit.

Leases that cannot be placed together stay in the queue for single placement, which also says why not.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db import DataError, IntegrityError

from broker.domain.geometry.profiles import Profile
from broker.domain.lifecycle.states import Isolation, LeaseState
from broker.domain.placement.pool import PoolIndex
from broker.domain.placement.slots import Slot
from broker.models.keys import allocation_id
from broker.models.transitions import log_transition
from broker.services.inventory.gpu_catalogue import profile_named
from broker.services.placement.placement_gpus import PlacementGpu, PoolKey, describe_placement
from broker.services.placement.shared_index import current_index
from ports import outbox
from ports.postgres import sql_statements
from ports.postgres.sql_statements import load_sql
from tenants.services.actors import SYSTEM
from tenants.services.rls import tenant_scope

MAX_BATCH, TRIES = 12, 3  # batch size, so that the first does not wait long for the last
RECHECK_AFTER = timedelta(seconds=10)
# Errors about one lease's data, unlike a lost connection, which ends the run.
DATA_ERRORS = (DataError, IntegrityError, ValueError, OverflowError)
RACE_CONSTRAINTS = {"one_lease_per_place", "one_isolation_per_gpu", "one_tenant_per_soft_gpu"}


class BatchLease(NamedTuple):
    """A queued lease of the batch, locked for placement."""

    id: str
    seq: int
    at: datetime
    lasts: int
    profile: str
    isolation: str


class BatchChoice(NamedTuple):
    """The slot chosen for a lease of the batch."""

    row: BatchLease
    profile: Profile
    slot: Slot
    gpu: PlacementGpu


class BatchResult(NamedTuple):
    """Result of a batch: leases that need no further attempt, and whether capacity ran out.

    Settled leases were placed, or are locked by another placer.
    """

    settled: set[str]
    contended: bool


def place_batch(
    pool: PoolKey, tenant_id: str, lease_ids: Sequence[str], *, notify_leases: Collection[str], now: datetime
) -> BatchResult:
    """Place as many leases of a tenant as fit, oldest first, in a transaction.

    No younger lease is placed after the first that finds no slot. Those of `notify_leases` get an outbox message
    to go on with. When another placer took a slot first, the batch is rolled back and tried again.
    """
    for _ in range(TRIES):
        try:
            with tenant_scope(tenant_id):
                rows = _lock_queued(lease_ids)
                placed, contended = _place_locked(pool, rows, now)
                for lease_id in placed:
                    log_transition(lease_id, tenant_id, before=LeaseState.QUEUED, after=LeaseState.PROVISIONING)
                to_notify = sorted(placed.intersection(notify_leases))
                outbox.enqueue_for_each("broker.reconcile_lease", to_notify, tenant_id=tenant_id, now=now)
                waits = {row.id for row in rows if row.id not in placed}
                return BatchResult(placed.union(lease_ids).difference(waits), contended)
        except DATA_ERRORS as error:
            if not is_lost_race(error):  # one of them has bad data: nothing was written, and they are placed one by one
                return BatchResult(set(), contended=True)
    return BatchResult(set(), contended=False)  # the first is placed alone, and those behind it as a batch again


def is_lost_race(error: Exception) -> bool:
    """Return whether the error means that another placer took the slot first."""
    return getattr(getattr(error.__cause__, "diag", None), "constraint_name", None) in RACE_CONSTRAINTS


def _lock_queued(lease_ids: Sequence[str]) -> list[BatchLease]:
    with sql_statements.prepared_cursor() as cursor:
        cursor.execute(load_sql("broker/queue/lock_queued"), [list(lease_ids)] * 2)
        return [BatchLease(*row) for row in cursor.fetchall()]


def _place_locked(pool: PoolKey, rows: Sequence[BatchLease], now: datetime) -> BatchResult:
    placed: set[str] = set()
    locked_elsewhere: set[str] = set()
    for _ in range(TRIES):
        rows = [row for row in rows if row.id not in placed]
        choices = _choose_slots(pool, rows, locked_elsewhere)
        taken = _write_placements(choices, now) if choices else set()
        placed |= taken
        if len(choices) < len(rows):
            return BatchResult(placed, contended=True)
        if len(taken) == len(rows):
            break
        locked_elsewhere |= {choice.slot.gpu for choice in choices if choice.row.id not in taken}
    return BatchResult(placed, contended=False)


def _choose_slots(pool: PoolKey, rows: Sequence[BatchLease], without: set[str]) -> list[BatchChoice]:
    """Choose slots one after the other, each as if the earlier ones were taken."""
    found: list[BatchChoice] = []
    with current_index() as stock:
        index = stock.index(pool, Isolation.HARDWARE)
        # Slices have hardware isolation: a PoolIndex ranks them, which supports trial placements.
        assert isinstance(index.best, PoolIndex)
        with index.changed(without=without, along=()), index.best.hold_temporarily() as hold:
            for row in rows:
                profile = profile_named(pool[0], row.profile, row.isolation)
                slot = index.best.find_cheapest_slot(profile)
                if slot is None:
                    break
                hold(slot, profile)
                found.append(BatchChoice(row, profile, slot, index.gpus[slot.gpu]))
    return found


def _write_placements(choices: Sequence[BatchChoice], now: datetime) -> set[str]:
    """Write placements, transitions and states; return the leases that succeeded."""
    wanted: dict[str, Any] = {
        "id": [c.row.id for c in choices],
        "seq": [c.row.seq for c in choices],
        "at": [c.row.at for c in choices],
        "lasts": [c.row.lasts for c in choices],
        "gpu": [c.slot.gpu for c in choices],
        "start": [c.slot.placement.start for c in choices],
        "size": [c.slot.placement.size for c in choices],
        "place": [allocation_id() for _ in choices],
        "cause": [describe_placement([c.slot], {c.slot.gpu: c.gpu}, c.profile) for c in choices],
        "now": now,
        "now_at": now.replace(microsecond=0),
        "due": now + RECHECK_AFTER,
        "kind": SYSTEM.kind,
        "actor": SYSTEM.id,
        "label": SYSTEM.label,
    }
    with sql_statements.prepared_cursor() as cursor:
        cursor.execute(load_sql("broker/queue/place_batch"), wanted)
        return {lease_id for (lease_id,) in cursor.fetchall()}
