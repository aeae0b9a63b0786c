"""Cards kept for a lease that has waited for too long: who came later goes elsewhere until it has its places.

Of all cards that would do those are kept that are free first, as far as the ends of what runs there are known. Nobody
from the queue comes onto them meanwhile, so they become free at last; who needs one node halts no others for it.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import connection

from broker.services.capacity import when_empty
from broker.services.catalogue import profile_of
from broker.services.placement.engine import up_to_date
from broker.services.placement.seating import Wish
from broker.services.placement.stock import WALLED
from tenants.services.walls import as_sweep

MOST = 8  # kinds of requests that keep cards at once; then all who are younger wait
GOES_WITHIN = timedelta(minutes=5)  # what takes longer to go may be stuck for good, and is counted on last
# What is told to go, or was left, is as good as gone; what has not begun may last as long as it was asked for.
FREE_AT = """
SELECT gpu_id, max(CASE WHEN NOT going THEN greatest(ends, %(now)s)
                        WHEN since > %(stuck)s THEN %(now)s
                        ELSE %(now)s + interval '10 years' END)
  FROM (SELECT a.gpu_id, coalesce(l.ends_at, %(now)s + make_interval(secs => l.max_duration_s)) AS ends,
               (l.state IN ('releasing', 'stopping') OR a.leaving_since IS NOT NULL) AND NOT a.for_move AS going,
               coalesce(a.leaving_since, l.at) AS since
          FROM broker_allocation a JOIN broker_lease l ON l.id = a.lease_id
         WHERE a.released_at IS NULL AND a.gpu_id = ANY(%(gpus)s)) held
 GROUP BY gpu_id
"""


@dataclass
class Kept:
    """What is kept in one look at a queue, and what those are told who would fit there."""

    cards: frozenset[str] = frozenset()
    shapes: set[object] = field(
        default_factory=set
    )  # of what they are kept for: its like comes right after it
    _whys: list[tuple[frozenset[str], str]] = field(default_factory=list)

    def keep(self, cards: frozenset[str], *, why: str) -> None:
        """Keep cards, and say why to whoever would like to have one of them."""
        self._whys.append((cards, why))
        self.cards |= cards

    def keep_for(self, wish: Wish, shape: object, *, why: str, now: datetime) -> bool:
        """Keep cards for the oldest request of its shape; False where all who are younger have to wait instead."""
        if len(self.shapes) >= MOST:
            return False
        room = room_for(wish, without=self.cards, now=now)
        if room is None and not room_for(wish, without=(), now=now):
            return False
        self.shapes.add(shape)
        if room:  # else an older one keeps what it needs, and it comes after that
            self.keep(room, why=why)
        return True

    def why(self, wanted: Collection[str]) -> str:
        """Say for whom some of the cards are kept that a request would have had."""
        return next((why for cards, why in self._whys if not cards.isdisjoint(wanted)), "")


def room_for(wish: Wish, *, without: Collection[str], now: datetime) -> frozenset[str] | None:
    """Return the cards that hold a request once they are empty and are so first; None where cards do not tell that.

    Links between cards and shares of one are more than a number of cards.
    """
    if wish.topology or wish.isolation not in WALLED:
        return None
    profile = profile_of(wish.offering)
    with up_to_date() as stock:
        able = [
            (card, fits)
            for card in stock.by_pool[wish.pool].values()
            if card.gpu not in without
            and card.sellable
            and (fits := when_empty(card, profile, as_cut_now=True))
        ]
    free_at = _free_at([card.gpu for card, _ in able if card.places], now)
    together = defaultdict[str, list[tuple[datetime, str, int]]](list)
    for card, fits in able:
        there = card.node if wish.same_node else card.cluster
        together[there].append((free_at.get(card.gpu, now), card.gpu, fits))
    rooms = [room for cards in together.values() if (room := _first(sorted(cards), wish.quantity))]
    return frozenset(min(rooms)[1]) if rooms else None


def _first(
    cards: Iterable[tuple[datetime, str, int]], quantity: int
) -> tuple[datetime, tuple[str, ...]] | None:
    """Return as many of some cards, in the order in which they become free, as hold a request; and when they do."""
    taken: list[str] = []
    for free_at, gpu, fits in cards:
        taken.append(gpu)
        quantity -= fits
        if quantity <= 0:
            return free_at, tuple(taken)
    return None


def _free_at(gpus: list[str], now: datetime) -> dict[str, datetime]:
    with as_sweep(), connection.cursor() as cursor:
        cursor.execute(FREE_AT, {"gpus": gpus, "now": now, "stuck": now - GOES_WITHIN})
        return dict(cursor.fetchall())
