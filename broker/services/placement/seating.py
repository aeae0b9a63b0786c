"""Where a whole request would go: which cards may serve it, and which of them it takes."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from django.db import connection

from broker.domain.placement.gangs import gang_of
from broker.domain.placement.seats import Seat
from broker.domain.placement.share_pool import SharePool
from broker.domain.placement.topology import ASKED
from broker.domain.profiles import Placement, Profile
from broker.domain.states import Isolation
from broker.models import Offering
from broker.services.catalogue import profile_of, shape
from broker.services.placement.cards import Card, Pool
from broker.services.placement.stock import WALLED, Index, Stock

NEAR = {"": "", "nvlink": " whose cards reach each other by NVLink", "numa": " below one processor"}
OWN = "SELECT gpu_id, count(*) FROM broker_occupied WHERE mine GROUP BY gpu_id"
# Read through the view, which tells whose a place is only to its own tenant.
OCCUPIED = """
SELECT gpu_id, profile, isolation, start, mine FROM broker_occupied WHERE gpu_id = ANY(%s) ORDER BY gpu_id, start
"""
STRANGERS = """
SELECT EXISTS (
  SELECT FROM broker_occupied o JOIN broker_gpu g ON g.id = o.gpu_id WHERE g.node_id = %s AND NOT o.mine)
"""


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be placed together, and where it may not go."""

    offering: Offering
    quantity: int = 1
    same_node: bool = False
    topology: str = ""  # a name of `topology.ASKED`: only cards of one node that are as near to each other
    cluster: str = ""  # the only one it may go to; empty: any
    not_in: frozenset[str] = frozenset()  # clusters, by name
    not_on: frozenset[str] = frozenset()  # nodes
    not_at: frozenset[str] = frozenset()  # cards: somebody else is about to take them

    @property
    def isolation(self) -> Isolation:
        return Isolation(self.offering.isolation)

    @property
    def pool(self) -> Pool:
        return pool_of(self.offering)


@dataclass(frozen=True)
class Seating:
    """Where a request would go now, with the cards it would go to."""

    seats: tuple[Seat, ...]
    cards: dict[str, Card]


def pool_of(offering: Offering) -> Pool:
    return offering.model, offering.region


def own_places(isolation: Isolation) -> Mapping[str, int]:
    """Return how many places on each card are the asker's own, where that matters. Inside the tenant's wall."""
    if isolation in WALLED:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(OWN)
        return dict(cursor.fetchall())


def has_strangers(node: str) -> bool:
    """Tell whether another tenant holds anything on a node. Must run inside the tenant's wall."""
    with connection.cursor() as cursor:
        cursor.execute(STRANGERS, [node])
        return bool(cursor.fetchone()[0])


def seat(wish: Wish, stock: Stock) -> Seating | None:
    """Choose seats for a whole request, or None when it does not fit now.

    All of a request lies in one cluster: its pods find each other by names that only their own cluster knows.
    """
    profile, mine = profile_of(wish.offering), own_places(wish.isolation)
    without = {gpu for node in wish.not_on for gpu in stock.by_node.get(node, ())} | wish.not_at
    for cluster in _clusters(wish, stock):
        index = stock.index(wish.pool, wish.isolation, cluster)
        with index.changed(without=without, along=stock.shared_only_with(index, mine)):
            seats = _together(stock, index, profile, wish)
        if seats is not None:
            return Seating(seats, {each.gpu: stock.cards[each.gpu] for each in seats})
    return None


def _clusters(wish: Wish, stock: Stock) -> Collection[str]:
    """Return the clusters to try in turn; the empty name asks all of them at once."""
    if wish.cluster:
        return [wish.cluster] if wish.cluster not in wish.not_in else []
    if wish.quantity == 1 and not wish.not_in:
        return [""]
    return [name for name in stock.clusters(wish.pool) if name not in wish.not_in]


def _together(stock: Stock, index: Index, profile: Profile, wish: Wish) -> tuple[Seat, ...] | None:
    if wish.quantity == 1:
        best = index.best.choose(profile)
        return (best,) if best else None
    # Several shares are not sold to one lease.
    if isinstance(index.best, SharePool) or index.best.how_many_fit(profile) < wish.quantity:
        return None
    return gang_of(
        index.best,
        profile,
        count=wish.quantity,
        same_node=wish.same_node,
        topologies=stock.links,
        within=ASKED.get(wish.topology),
    )


def how_many(
    offering: Offering,
    stock: Stock,
    *,
    mine: Mapping[str, int],
    cluster: str = "",
    without: Collection[str] = (),
) -> int:
    """Return exactly how many of an offering could be placed now, on other cards than some."""
    index = stock.index(pool_of(offering), Isolation(offering.isolation), cluster)
    with index.changed(without=without, along=stock.shared_only_with(index, mine)):
        return index.best.how_many_fit(profile_of(offering))


def drawn(seating: Seating) -> Seating:
    """Return it with what lies on its cards, and which of that is the asker's own."""
    held: dict[str, list[tuple[str, Placement, bool]]] = {gpu: [] for gpu in seating.cards}
    with connection.cursor() as cursor:
        cursor.execute(OCCUPIED, [list(held)])
        for gpu, profile, isolation, start, mine in cursor.fetchall():
            placed = shape(seating.cards[gpu].model, profile, isolation).placed_at(start)
            held[gpu].append((profile, placed, mine))
    cards = {gpu: replace(card, held=tuple(held[gpu])) for gpu, card in seating.cards.items()}
    return Seating(seating.seats, cards)
