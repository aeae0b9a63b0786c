"""A pool's queue: oldest first, small ones may pass, and nobody starves."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile

import structlog
from django.db import connection
from django.db.models.functions import Coalesce

from broker.domain.states import Isolation
from broker.models import Lease, MovePlan, Offering
from broker.services.capacity import could_ever_fit
from broker.services.leases import bursts, placing
from broker.services.leases.bursts import UNREADABLE
from broker.services.leases.reserving import Kept
from broker.services.placement.cards import Pool
from broker.services.placement.seating import Wish, pool_of
from broker.services.placement.stock import WALLED
from ports import doorbell
from tenants.services.walls import as_sweep, as_tenant

BATCH = 5000
# From then on cards are kept for it, so that a large gang lands at last, if it can; else the younger wait behind it.
PATIENCE = timedelta(hours=1)
TOO_LONG = "which has waited for more than an hour and is placed first"
MADE_ROOM_FOR = "for which others are being moved out of the way now"
Shape = tuple[str, int, bool, str]  # offering, quantity, same node, topology
Wants = tuple[str, str, int, bool, str]  # the tenant, too: of two equals, both fit or neither
log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Waiting:
    """One lease of a queue, as much of it as the sweep may see."""

    lease_id: str
    tenant_id: str
    offering_id: str
    quantity: int
    same_node: bool
    topology: str
    since: datetime
    waits_for: str
    volume_id: str | None  # it may have to go where that lies, and nobody elsewhere waits behind it
    generation: int
    isolation: str

    @property
    def is_plain(self) -> bool:
        """Tell whether it takes any place there is: a volume, a gang, a share or a second try may not."""
        walled = Isolation(self.isolation) in WALLED
        return self.quantity == 1 and self.volume_id is None and self.generation == 1 and walled

    @property
    def wants(self) -> Wants:
        return self.tenant_id, *self.shape

    @property
    def shape(self) -> Shape:
        return self.offering_id, self.quantity, self.same_node, self.topology

    @property
    def wish(self) -> Wish:
        """What it waits for, wherever that is."""
        offering = Offering.objects.get(pk=self.offering_id)
        return Wish(offering, self.quantity, self.same_node, self.topology)


def serve(pool: Pool, *, now: datetime, upto: str = "") -> int:
    """Place every waiting lease of a pool that fits, oldest first; return how many were placed.

    Whoever has the hint of one lease goes no further: those that came with it have hints of their own.
    """
    hopeless: dict[Wants, str] = {}  # what found no place just now, and why: its like need not try
    queue, impossible = waiting(pool, upto=upto), set[Shape]()
    placed, together, crowded, kept = 0, set[str](), False, Kept()
    rooms: dict[str, frozenset[str]] | None = (
        None  # for whom others are moved: asked where one finds no place
    )
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
        if rooms is None:
            rooms = MovePlan.objects.making_room(*pool)
        if entry.lease_id in rooms:
            kept.keep(rooms[entry.lease_id], why=_behind(entry.wish, MADE_ROOM_FOR))
        elif _is_overdue(entry, now) and entry.shape not in impossible | kept.shapes:
            wish = entry.wish
            if not _may_land(wish):
                impossible.add(entry.shape)
            elif not kept.keep_for(wish, entry.shape, why=_behind(wish, TOO_LONG), now=now):
                _hold_back(queue[number:], _behind(wish, TOO_LONG))
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


def _is_overdue(entry: Waiting, now: datetime) -> bool:
    """Tell whether it has waited for too long for something that others could take."""
    return now - entry.since > PATIENCE and not entry.volume_id


def _may_land(wish: Wish) -> bool:
    """Tell whether the cards in service could hold it once they are empty; else nobody need wait behind it."""
    most = could_ever_fit(
        wish.offering,
        quantity=wish.quantity,
        same_node=wish.same_node,
        topology=wish.topology,
        in_service=True,
    )
    return most >= wish.quantity


def _behind(older: Wish, why: str) -> str:
    return f"Waits behind an older request for {older.quantity} × {older.offering.label}, {why}."


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


def waiting(pool: Pool, *, upto: str = "") -> list[Waiting]:
    """Return a pool's queue, oldest first: all of it, or as far as one lease."""
    model, region = pool
    columns = (
        *("id", "tenant_id", "offering_id", "quantity", "same_node", "topology"),
        *("since", "waits_for", "volume_id"),
        *("generation", "offering__isolation"),
    )
    with as_sweep():
        queued = Lease.objects.filter(state="queued", offering__gpu_model=model, offering__region=region)
        rows = queued.annotate(since=Coalesce("waits_since", "created_at")).order_by("since", "id")
        queue = [Waiting(*row) for row in rows.values_list(*columns)[:BATCH]]
    if not upto:
        return queue
    ids = [entry.lease_id for entry in queue]
    return queue[: ids.index(upto) + 1] if upto in ids else []  # it waits no longer: nor need anybody for it


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
