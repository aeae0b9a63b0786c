"""The queue of a pool: oldest first, small requests may overtake, no lease starves."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from itertools import takewhile

import structlog

from broker.models import Lease
from broker.services.placement.placement_gpus import PoolKey
from broker.services.placement.slot_search import pool_of
from broker.services.queue import batch_placement, lease_placement, spot_reclaims
from broker.services.queue.batch_placement import DATA_ERRORS
from broker.services.queue.gpu_reservations import ReservedGpus
from broker.services.queue.starvation_guard import QueuedLease, StarvationGuard, TenantRequestShape, load_queue
from ports import outbox
from ports.postgres.sql_statements import query_rows
from tenants.services.rls import tenant_scope

log = structlog.get_logger(__name__)


def run_queue(pool: PoolKey, *, now: datetime, upto: str = "") -> int:
    """Place every queued lease of a pool that fits, oldest first; return how many.

    With `upto` it stops at that lease: the younger ones have messages of their own.
    """
    queue, first = load_queue(pool, upto=upto, now=now), StarvationGuard(pool, now=now)
    if not queue:
        return 0
    hopeless: dict[TenantRequestShape, str] = {}  # requests that found no slot, and why: equal ones need not be tried
    placed, together, contended, reserved = 0, set[str](), False, first.kept
    reclaims = spot_reclaims.QueueReclaims(pool, now=now)
    promised = reclaims.promised
    for number, entry in enumerate(queue, 1):
        reason = None if entry.lease_id in promised else hopeless.get(entry.tenant_shape)
        if reason is None and not contended and not reserved.gpus and entry.lease_id not in together:
            burst = _batch_head(queue[number - 1 : number - 1 + batch_placement.MAX_BATCH], promised)
            settled, contended = _place_as_batch(pool, burst, now, targeted=bool(upto))
            together |= settled
        if entry.lease_id in together:
            placed += 1
            continue
        try:
            if reason is None and _place_single(entry, hopeless, now, reserved, promised, targeted=bool(upto)):
                placed += 1
                continue
        except DATA_ERRORS:  # one unexpected row must not stop the queue
            log.exception("lease cannot be placed", lease_id=entry.lease_id)
            continue
        if reason is not None and reason != entry.pending_reason:
            with tenant_scope(entry.tenant_id):
                lease_placement.write_pending_reason([entry.lease_id], reason)
        if entry.lease_id in promised or reclaims.give_notice(entry, reserved=reserved.gpus):
            continue
        if held_back := first.keep(entry):
            _make_younger_wait(queue[number:], held_back)
            break
    return placed


def _batch_head(queue: Sequence[QueuedLease], promised: Collection[str] = ()) -> list[QueuedLease]:
    """Return the head of the queue that can be placed as a batch.

    These are slices of one tenant that need no closer check, and that are not promised their slots.
    """
    tenant_id = queue[0].tenant_id
    return list(
        takewhile(lambda each: each.tenant_id == tenant_id and each.is_plain and each.lease_id not in promised, queue)
    )


def _place_as_batch(
    pool: PoolKey, burst: Sequence[QueuedLease], now: datetime, *, targeted: bool
) -> batch_placement.BatchResult:
    if len(burst) <= 1:
        return batch_placement.BatchResult(set(), contended=False)
    ids = [each.lease_id for each in burst]
    # With a message of one lease, untried others have messages of their own on the way.
    notify_leases = [each.lease_id for each in burst if not targeted or each.pending_reason]
    return batch_placement.place_batch(pool, burst[0].tenant_id, ids, notify_leases=notify_leases, now=now)


def _make_younger_wait(younger: Iterable[QueuedLease], reason: str) -> None:
    """Make younger leases wait, so that freed capacity goes to an older one."""
    to_update: defaultdict[str, list[str]] = defaultdict(list)
    for entry in younger:
        if entry.pending_reason != reason:
            to_update[entry.tenant_id].append(entry.lease_id)
    for tenant_id, lease_ids in to_update.items():
        with tenant_scope(tenant_id):
            lease_placement.write_pending_reason(lease_ids, reason)


def _place_single(
    entry: QueuedLease,
    hopeless: dict[TenantRequestShape, str],
    now: datetime,
    reserved: ReservedGpus,
    promised: Collection[str],
    *,
    targeted: bool,
) -> bool:
    with tenant_scope(entry.tenant_id):
        lease = Lease.objects.select_related("offering").filter(pk=entry.lease_id, state="queued").first()
        if lease is None:
            return True  # another worker was faster: it is not queued any more
        if lease_placement.place_lease(lease, now=now, reserved=reserved):
            if not targeted or entry.pending_reason:
                outbox.enqueue("broker.reconcile_lease", lease.pk, tenant_id=lease.tenant_id, now=now)
            # else it was never tried: its own message is on the way, and goes on with it
            return True
        if entry.lease_id in promised:  # it waits for slots of its own
            return False
        if lease.generation == 1 and not lease.volume_id:  # others are more restricted than equal requests
            hopeless[entry.tenant_shape] = lease.pending_reason
        return False


def is_first_in_queue(lease: Lease) -> bool:
    """Return whether no lease of any tenant has waited longer in its pool."""
    model, region = pool_of(lease.offering)
    where = {"model": model, "region": region, "since": lease.queues_since, "lease": lease.pk}
    ((has_older,),) = query_rows("broker/queue/has_older", where)
    return not has_older
