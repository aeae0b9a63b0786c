"""What a seat costs: the bid-price rule. Room is worth the best that could still be sold in it."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from broker.domain.placement.ranks import Ranks, Rule, ranked
from broker.domain.placement.tables import EMPTY, Move, Table, table_of
from broker.domain.profiles import Profile

PLACES = 4  # prices of a solver carry noise; losses that differ by less than this are equal


class Cost(NamedTuple):
    """What a slice at a place costs the fleet, smaller is better, in the order in which it matters."""

    opens: bool  # an empty card is the last resort: it could still be sold whole
    loss: float  # the best that could still be sold on the card, less the best that could be afterwards
    compute_left: int
    quiet: int  # a card with few slices may soon be empty: the fewer, the rather it is left alone
    narrows: float  # the loss at prices nearby: of equal losses the one that leaves more to choose from
    strands: float  # how much more of the free compute is of no use to what is asked for
    units_left: int

    @property
    def anywhere(self) -> tuple[bool, float, int]:
        """Return the part that compares with cards that are cut otherwise: prices are one model's, ties are not."""
        return self[:3]


def bid_price(table: Table, worth: Sequence[float], popularity: Sequence[float] | None = None) -> Rule:
    """Return the rule for prices by profile; whole numbers stay exact.

    `popularity` is by profile its part of what is asked for; without it no profile is more popular than another.
    Only a table that counts slices tells quiet cards from busy ones.
    """
    best, nearby = best_fill(table, worth), _nearby(table, worth)
    compute = [int(most) for most in best_fill(table, [profile.compute for profile in table.profiles])]
    stranded = _stranded(table, compute, popularity) if popularity else [0.0] * len(table.states)

    def cost(_: Table, profile: int, state: int, move: Move) -> Cost:
        return Cost(
            opens=state == EMPTY,
            loss=round(best[state] - best[move.after], PLACES),
            compute_left=compute[move.after],
            quiet=-table.count(move.after),
            narrows=round(nearby[state] - nearby[move.after], PLACES),
            strands=round(stranded[move.after] - stranded[state], PLACES),
            units_left=table.free(move.after),
        )

    return cost


@lru_cache(maxsize=1024)
def ranks_by_price(
    profiles: tuple[Profile, ...],
    grid: int,
    worth: tuple[float, ...],
    popularity: tuple[float, ...] | None = None,
    *,
    counted: bool = False,
    besides: tuple[Profile, ...] = (),
) -> Ranks:
    """Return the ranks of this rule; cards of one kind and one price list share them."""
    table = table_of(profiles, grid, counted=counted, besides=besides)
    return ranked(table, bid_price(table, worth, popularity))


def best_fill(table: Table, worth: Sequence[float]) -> list[float]:
    """Return by state the greatest total worth of slices that still fit beside what is taken."""
    best: list[float] = [0] * len(table.states)
    # A slice more is always a state of a higher number, so what is to come is known already.
    for state in reversed(range(len(table.states))):
        for price, moves in zip(worth, table.moves, strict=True):
            for move in moves[state]:
                best[state] = max(best[state], price + best[move.after])
    return best


def _nearby(table: Table, worth: Sequence[float]) -> list[float]:
    """Return by state the sum of the best fills with each price in turn a tenth lower.

    Higher would keep room for the one way of filling a card that just became dear; lower asks what is left of
    it when one way is not wanted. A fleet that fills up takes 0.2 to 0.3 in a hundred more by it.
    """
    total = [0.0] * len(table.states)
    for profile in range(len(worth)):
        prices = [9 * price if p == profile else 10 * price for p, price in enumerate(worth)]
        total = [a + b for a, b in zip(total, best_fill(table, prices), strict=True)]
    return total


def _stranded(table: Table, compute: Sequence[int], popularity: Sequence[float]) -> list[float]:
    """Return by state the free compute slices times the part of what is asked for that no longer fits."""
    return [
        free * sum(part for part, moves in zip(popularity, table.moves, strict=True) if not moves[state])
        for state, free in enumerate(compute)
    ]
