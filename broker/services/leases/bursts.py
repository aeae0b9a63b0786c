"""Many single slices of one tenant placed at once: one look at the cards, one statement, one commit.

What does not go through together is left in the queue, for whoever places leases one by one and says why not.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db import DataError, IntegrityError

from broker.domain.placement.pool import PoolIndex
from broker.domain.placement.seats import Seat
from broker.domain.profiles import Profile
from broker.domain.states import Isolation, LeaseState
from broker.models.keys import allocation_id
from broker.models.telling import tell
from broker.services.catalogue import shape
from broker.services.placement.cards import Card, Pool, placed_on
from broker.services.placement.engine import up_to_date
from ports import database, doorbell
from tenants.services.actors import SYSTEM
from tenants.services.walls import as_tenant

MOST, TRIES = 12, 3  # that many at once, so that the first does not wait long for the last
LOOK_AGAIN = timedelta(seconds=10)
# What the database cannot take or give back: about one lease, unlike a lost connection, which ends the run.
UNREADABLE = (DataError, IntegrityError, ValueError, OverflowError)
GUARDS = {"one_lease_per_place", "one_isolation_per_card", "no_strangers_on_a_soft_card"}
# Who is in the hands of another placer at this moment is theirs.
QUEUED = """
SELECT l.id, l.seq, l.at, l.max_duration_s, o.profile, o.isolation
  FROM broker_lease l JOIN broker_offering o ON o.id = l.offering_id
 WHERE l.id = ANY(%s) AND l.state = 'queued'
 ORDER BY array_position(%s, l.id::text) FOR NO KEY UPDATE OF l SKIP LOCKED
"""
# A card in the hands of another placer is left to them, and so is a place that they have just taken.
TAKE = """
WITH wanted AS (
  SELECT * FROM unnest(%(id)s::text[], %(seq)s::int[], %(at)s::timestamptz[], %(lasts)s::int[], %(gpu)s::text[],
                       %(start)s::int[], %(size)s::int[], %(place)s::text[], %(cause)s::text[])
             AS w (id, seq, at, lasts, gpu_id, start, size, place, cause)
), free AS (
  SELECT g.id, c.shares_soft_cards
    FROM broker_gpu g JOIN broker_node n ON n.id = g.node_id JOIN broker_cluster c ON c.id = n.cluster_id
   WHERE g.id IN (SELECT gpu_id FROM wanted) AND g.health = 'healthy' AND n.state = 'ready' AND g.closed_since IS NULL
     AND c.silent_since IS NULL AND c.frozen = ''
   ORDER BY g.id FOR NO KEY UPDATE OF g SKIP LOCKED
), moved AS (
  UPDATE broker_lease l SET version = l.version + 1, state = 'provisioning', seq = l.seq + 1,
         at = greatest(l.at, %(now_at)s), generation = l.generation + 1, claimed_until = NULL, due_at = %(due)s,
         tries = 0, waits_for = '', progress = '{}'
    FROM wanted w JOIN free f ON f.id = w.gpu_id
   WHERE l.id = w.id AND l.state = 'queued' AND l.seq = w.seq AND l.max_duration_s = w.lasts
     AND NOT EXISTS (SELECT FROM broker_occupied o WHERE o.gpu_id = w.gpu_id
                        AND o.start < w.start + w.size AND o.start + o.size > w.start)
  RETURNING l.*, w.at AS prev_at, w.gpu_id, w.start, w.size, w.place, w.cause, f.shares_soft_cards
), held AS (
  INSERT INTO broker_allocation (id, tenant_id, lease_id, generation, gpu_id, placement, profile, isolation, may_share,
         held_at)
  SELECT m.place, m.tenant_id, m.id, m.generation, m.gpu_id, int4range(m.start, m.start + m.size), o.profile,
         o.isolation, m.shares_soft_cards, %(now)s
    FROM moved m JOIN broker_offering o ON o.id = m.offering_id
)
INSERT INTO broker_transition (lease_id, seq, tenant_id, at, prev_seq, prev_at, before, after, reason, cause,
       offering_id, project_id, quantity, price_class, generation, actor_kind, actor_id, actor_label)
SELECT m.id, m.seq, m.tenant_id, m.at, m.seq - 1, m.prev_at, 'queued', 'provisioning', 'none', left(m.cause, 200),
       m.offering_id, m.project_id, m.quantity, o.price_class, m.generation, %(kind)s, %(actor)s, %(label)s
  FROM moved m JOIN broker_offering o ON o.id = m.offering_id
RETURNING lease_id
"""


class Row(NamedTuple):
    """A lease of the queue that is ours to place."""

    id: str
    seq: int
    at: datetime
    lasts: int
    profile: str
    isolation: str


class Choice(NamedTuple):
    """Where one of them would go."""

    row: Row
    profile: Profile
    seat: Seat
    card: Card


class Outcome(NamedTuple):
    """Who waits no longer, or is in the hands of another placer; and whether one of ours found no room."""

    settled: set[str]
    crowded: bool


def place(
    pool: Pool, tenant_id: str, lease_ids: Sequence[str], *, rings_for: Collection[str], now: datetime
) -> Outcome:
    """Place as many leases of a tenant as go through together, the oldest first, in a transaction of its own.

    None younger is placed than the first that finds no room. Those of `rings_for` get a hint to go on with. Who loses
    a place to somebody faster looks again; nothing is written of what was lost with it.
    """
    for _ in range(TRIES):
        try:
            with as_tenant(tenant_id):
                rows = _queued(lease_ids)
                placed, crowded = _place(pool, rows, now)
                for lease_id in placed:
                    tell(lease_id, tenant_id, before=LeaseState.QUEUED, after=LeaseState.PROVISIONING)
                rung = sorted(placed.intersection(rings_for))
                doorbell.ring_for_each("broker.step", rung, tenant_id=tenant_id, now=now)
                waits = {row.id for row in rows if row.id not in placed}
                return Outcome(placed.union(lease_ids).difference(waits), crowded)
        except UNREADABLE as error:
            if not was_faster(error):  # one of them is odd: nothing was written, and they go one by one
                return Outcome(set(), crowded=True)
    return Outcome(set(), crowded=False)  # the first of them goes alone, and those behind it together again


def was_faster(error: Exception) -> bool:
    """Tell whether somebody else took a place, or came to a card, between the look at it and the writing."""
    return getattr(getattr(error.__cause__, "diag", None), "constraint_name", None) in GUARDS


def _queued(lease_ids: Sequence[str]) -> list[Row]:
    with database.prepared() as cursor:
        cursor.execute(QUEUED, [list(lease_ids)] * 2)
        return [Row(*row) for row in cursor.fetchall()]


def _place(pool: Pool, rows: Sequence[Row], now: datetime) -> Outcome:
    placed: set[str] = set()
    in_hands: set[str] = set()
    for _ in range(TRIES):
        rows = [row for row in rows if row.id not in placed]
        choices = _choose(pool, rows, in_hands)
        taken = _take(choices, now) if choices else set()
        placed |= taken
        if len(choices) < len(rows):
            return Outcome(placed, crowded=True)
        if len(taken) == len(rows):
            break
        in_hands |= {choice.seat.gpu for choice in choices if choice.row.id not in taken}
    return Outcome(placed, crowded=False)


def _choose(pool: Pool, rows: Sequence[Row], without: set[str]) -> list[Choice]:
    """Choose for one after the other, each as if those before it were there already."""
    found: list[Choice] = []
    with up_to_date() as stock:
        index = stock.index(pool, Isolation.HARDWARE)
        # Slices have walls: they are ranked by a pool, which lets places be tried.
        assert isinstance(index.best, PoolIndex)
        with index.changed(without=without, along=()), index.best.trying() as hold:
            for row in rows:
                profile = shape(pool[0], row.profile, row.isolation)
                seat = index.best.choose(profile)
                if seat is None:
                    break
                hold(seat, profile)
                found.append(Choice(row, profile, seat, index.cards[seat.gpu]))
    return found


def _take(choices: Sequence[Choice], now: datetime) -> set[str]:
    """Write them down; return the leases that were, each with its place, its step and its new state."""
    wanted: dict[str, Any] = {
        "id": [c.row.id for c in choices],
        "seq": [c.row.seq for c in choices],
        "at": [c.row.at for c in choices],
        "lasts": [c.row.lasts for c in choices],
        "gpu": [c.seat.gpu for c in choices],
        "start": [c.seat.placement.start for c in choices],
        "size": [c.seat.placement.size for c in choices],
        "place": [allocation_id() for _ in choices],
        "cause": [placed_on([c.seat], {c.seat.gpu: c.card}, c.profile) for c in choices],
        "now": now,
        "now_at": now.replace(microsecond=0),
        "due": now + LOOK_AGAIN,
        "kind": SYSTEM.kind,
        "actor": SYSTEM.id,
        "label": SYSTEM.label,
    }
    with database.prepared() as cursor:
        cursor.execute(TAKE, wanted)
        return {lease_id for (lease_id,) in cursor.fetchall()}
