"""A pool's queue: oldest first, small ones may pass, and nobody starves."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import takewhile

import structlog
from django.db import connection

from broker.models import Lease
from broker.services.leases import bursts, placing
from broker.services.leases.bursts import UNREADABLE
from broker.services.leases.precedence import Precedence, Waiting, Wants, waiting
from broker.services.leases.reserving import Kept
from broker.services.placement.cards import Pool
from broker.services.placement.seating import pool_of
from ports import doorbell
from tenants.services.walls import as_tenant

log = structlog.get_logger(__name__)


def serve(pool: Pool, *, now: datetime, upto: str = "") -> int:
    """Place every waiting lease of a pool that fits, oldest first; return how many were placed.

    Whoever has the hint of one lease goes no further: those that came with it have hints of their own.
    """
    hopeless: dict[Wants, str] = {}  # what found no place just now, and why: its like need not try
    queue, first = waiting(pool, upto=upto), Precedence(pool, now=now)
    placed, together, crowded, kept = 0, set[str](), False, first.kept
    for number, entry in enumerate(queue, 1):
        reason = hopeless.get(entry.wants)
        if reason is None and not crowded and not kept.cards and entry.lease_id not in together:
            burst = _burst(queue[number - 1 : number - 1 + bursts.MOST])
            settled, crowded = _place_together(pool, burst, now, hinted=bool(upto))
            together |= settled
        if entry.lease_id in together:
            placed += 1
            continue
        try:
            if reason is None and _try(entry, hopeless, now, kept, hinted=bool(upto)):
                placed += 1
                continue
        except UNREADABLE:  # one row that nobody foresaw must not halt the pool
            log.exception("lease cannot be placed", lease_id=entry.lease_id)
            continue
        if reason is not None and reason != entry.waits_for:
            with as_tenant(entry.tenant_id):
                placing.say([entry.lease_id], reason)
        if held_back := first.keep(entry):
            _hold_back(queue[number:], held_back)
            break
    return placed


def _burst(queue: Sequence[Waiting]) -> list[Waiting]:
    """Return the head of a queue that may be placed together: slices of one tenant that need no closer look."""
    head = queue[0]
    return list(takewhile(lambda each: each.tenant_id == head.tenant_id and each.is_plain, queue))


def _place_together(pool: Pool, burst: Sequence[Waiting], now: datetime, *, hinted: bool) -> bursts.Outcome:
    if len(burst) <= 1:
        return bursts.Outcome(set(), crowded=False)
    ids = [each.lease_id for each in burst]
    # Nobody has looked at the others of a hint: their own are on their way, and go on with them.
    rings_for = [each.lease_id for each in burst if not hinted or each.waits_for]
    return bursts.place(pool, burst[0].tenant_id, ids, rings_for=rings_for, now=now)


def _hold_back(younger: Iterable[Waiting], reason: str) -> None:
    """Leave who came later in the queue, so that nobody takes a place that becomes free for who came before."""
    untold: defaultdict[str, list[str]] = defaultdict(list)
    for entry in younger:
        if entry.waits_for != reason:
            untold[entry.tenant_id].append(entry.lease_id)
    for tenant_id, lease_ids in untold.items():
        with as_tenant(tenant_id):
            placing.say(lease_ids, reason)


def _try(entry: Waiting, hopeless: dict[Wants, str], now: datetime, kept: Kept, *, hinted: bool) -> bool:
    with as_tenant(entry.tenant_id):
        lease = Lease.objects.select_related("offering").filter(pk=entry.lease_id, state="queued").first()
        if lease is None:
            return True  # somebody was faster: it waits no longer
        if placing.place(lease, now=now, kept=kept):
            if not hinted or entry.waits_for:
                doorbell.ring("broker.step", lease.pk, tenant_id=lease.tenant_id, now=now)
            # else nobody has looked at it: the hint with which it came is on its way, and goes on with it
            return True
        if lease.generation == 1 and not lease.volume_id:  # others are choosier than their like
            hopeless[entry.wants] = lease.waits_for
        return False


OLDER = """
SELECT EXISTS (
  SELECT FROM broker_waiting w JOIN broker_offering o ON o.id = w.offering_id
   WHERE o.gpu_model_id = %s AND o.region = %s AND (w.created_at, w.lease_id) < (%s, %s))
"""


def is_first(lease: Lease) -> bool:
    """Tell whether nobody of any tenant has waited longer for a card of its pool."""
    with connection.cursor() as cursor:
        cursor.execute(OLDER, [*pool_of(lease.offering), lease.queues_since, lease.pk])
        return not cursor.fetchone()[0]
