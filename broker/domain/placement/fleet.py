"""Cards with the slices that lie on them: what a choice of card need not know, and a move must."""

from collections.abc import Sequence
from typing import NamedTuple

from broker.domain.placement.buckets import Buckets
from broker.domain.placement.rules import best_fill
from broker.domain.placement.shapes import Shapes
from broker.domain.placement.tables import EMPTY


class Slice(NamedTuple):
    """A live slice: its allocation, its profile, its first unit, and what moving it costs (None: it stays)."""

    allocation: str
    profile: int
    start: int
    cost: int | None = None
    tenant: str = ""

    def at(self, start: int) -> "Slice":
        """Return the same slice from another unit on."""
        return Slice(self.allocation, self.profile, start, self.cost, self.tenant)


class Fleet:
    """Buckets that also remember, card by card, which slices lie there."""

    def __init__(self, buckets: Buckets, worth: Sequence[float] | None = None) -> None:
        """Take cards that are all empty; what lies on them already is told by `hold`.

        `worth` is the price of each profile; without it every unit of memory is worth the same.
        """
        self.buckets, self.table, self.ranks = buckets, buckets.table, buckets.ranks
        self.on: list[dict[int, Slice]] = [{} for _ in buckets.node]  # by card, then by first unit
        self.card: dict[str, int] = {}  # by allocation
        self.start: dict[str, int] = {}
        self.shapes = Shapes(self.table, len(buckets.node))
        self.worth = list(worth or (profile.memory for profile in self.table.profiles))
        self.room = best_fill(
            self.table, self.worth
        )  # by state, the best that could still be sold on a card in it

    def copy(self) -> "Fleet":
        """Return the same cards with the same slices, whatever happened to them before."""
        twin = object.__new__(Fleet)
        twin.table, twin.ranks = self.table, self.ranks
        twin.worth, twin.room = self.worth, self.room
        twin.buckets = Buckets(self.ranks, self.buckets.node, self.buckets.state)
        twin.on = [dict(sorted(on.items())) for on in self.on]
        twin.card, twin.start = dict(self.card), dict(self.start)
        twin.shapes = self.shapes.copy()
        return twin

    @property
    def in_use(self) -> int:
        """How many cards something lies on."""
        return len(self.on) - len(self.shapes.cards.get(0, ()))

    def seat(self, profile: int, *, opening: bool = True) -> tuple[int, int] | None:
        """Return the card and first unit where a slice costs least; without opening, on no empty card."""
        buckets, ranks = self.buckets, self.ranks
        live = buckets.live[profile]
        if not opening:
            live &= ~ranks.bit[profile][EMPTY]
        if not live:
            return None
        state = ranks.order[profile][(live & -live).bit_length() - 1]
        card = buckets.empty.first() if state == EMPTY else buckets.cards[state][-1]
        return card, ranks.best[profile][state].start

    def place(self, piece: Slice, *, opening: bool = True) -> tuple[int, int] | None:
        """Put a slice where it costs least, whatever start it names; None when it fits nowhere."""
        seat = self.seat(piece.profile, opening=opening)
        if seat:
            self.hold(seat[0], piece.at(seat[1]))
        return seat

    def hold(self, card: int, piece: Slice) -> None:
        """Put a slice on a card; raises KeyError where it is taken or the allocation lies elsewhere already."""
        if piece.allocation in self.card:
            raise KeyError(
                f"allocation {piece.allocation} lies on card {self.card[piece.allocation]} already"
            )
        self.buckets.hold(card, piece.profile, piece.start)
        self.on[card][piece.start] = piece
        self.card[piece.allocation], self.start[piece.allocation] = card, piece.start
        self.shapes.put(card, piece.profile, piece.start, movable=piece.cost is not None)

    def lift(self, allocation: str) -> Slice:
        """Take an allocation's slice off its card; raises KeyError for one that is not there."""
        card, start = self.card.pop(allocation), self.start.pop(allocation)
        piece = self.on[card].pop(start)
        self.buckets.release(card, piece.profile, start)
        self.shapes.take(card, piece.profile, start, movable=piece.cost is not None)
        return piece
