"""The bid-price rule: a placement costs what could no longer be sold.

Room is worth the best that could still be sold in it.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from broker.domain.geometry.profiles import Profile
from broker.domain.placement.costs.state_ranks import CostRule, StateRanks, rank_states
from broker.domain.placement.costs.state_tables import EMPTY, PlacementOption, StateTable, build_state_table

PRICE_DECIMALS = 4  # decimals kept: prices from a solver carry noise


class PlacementCost(NamedTuple):
    """The cost of a placement in order of importance; smaller is better."""

    opens: bool  # an empty GPU is the last resort: it could still be sold whole
    loss: float  # decrease of the best that could still be sold on the GPU
    compute_left: int
    quiet: int  # a GPU with few slices may soon be empty, so it is used later
    narrows: float  # the loss at nearby prices: among equal losses keep more choices
    strands: float  # increase of free compute that the demand cannot use
    units_left: int

    @property
    def anywhere(self) -> tuple[bool, float, int]:
        """Return the part that is comparable across differently partitioned GPUs.

        Prices are the same for one model; tie breakers are not.
        """
        return self[:3]


def bid_price_rule(table: StateTable, worth: Sequence[float], popularity: Sequence[float] | None = None) -> CostRule:
    """Return the rule for prices by profile; whole numbers stay exact.

    `popularity` is each profile's part of the demand; without it all are equally popular. Only a table
    that counts slices tells GPUs with few slices from those with many.
    """
    best, nearby = best_fill(table, worth), _best_fill_nearby(table, worth)
    compute = [int(most) for most in best_fill(table, [profile.compute for profile in table.profiles])]
    stranded = _stranded_compute(table, compute, popularity) if popularity else [0.0] * len(table.states)

    def cost(_: StateTable, profile: int, state: int, move: PlacementOption) -> PlacementCost:
        return PlacementCost(
            opens=state == EMPTY,
            loss=round(best[state] - best[move.after], PRICE_DECIMALS),
            compute_left=compute[move.after],
            quiet=-table.count(move.after),
            narrows=round(nearby[state] - nearby[move.after], PRICE_DECIMALS),
            strands=round(stranded[move.after] - stranded[state], PRICE_DECIMALS),
            units_left=table.free(move.after),
        )

    return cost


@lru_cache(maxsize=1024)
def bid_price_ranks(
    profiles: tuple[Profile, ...],
    grid: int,
    worth: tuple[float, ...],
    popularity: tuple[float, ...] | None = None,
    *,
    counted: bool = False,
    existing: tuple[Profile, ...] = (),
) -> StateRanks:
    """Return the ranks of this rule, shared by GPUs of one kind and price list."""
    table = build_state_table(profiles, grid, counted=counted, existing=existing)
    return rank_states(table, bid_price_rule(table, worth, popularity))


def best_fill(table: StateTable, worth: Sequence[float]) -> list[float]:
    """Return, by state, the greatest total worth of slices that still fit."""
    best: list[float] = [0] * len(table.states)
    # One more slice always gives a higher state number, so later states are computed already.
    for state in reversed(range(len(table.states))):
        for price, moves in zip(worth, table.options, strict=True):
            for move in moves[state]:
                best[state] = max(best[state], price + best[move.after])
    return best


def _best_fill_nearby(table: StateTable, worth: Sequence[float]) -> list[float]:
    """Return, by state, the sum of best fills with each price in turn lowered.

    Each is lowered by a tenth. Higher prices would keep room for the one way of filling a GPU that just
    became dear; lower ones show what is left when one way is not wanted. A filling fleet takes 0.2 to
    0.3 % more by it.
    """
    total = [0.0] * len(table.states)
    for profile in range(len(worth)):
        prices = [9 * price if p == profile else 10 * price for p, price in enumerate(worth)]
        total = [a + b for a, b in zip(total, best_fill(table, prices), strict=True)]
    return total


def _stranded_compute(table: StateTable, compute: Sequence[int], popularity: Sequence[float]) -> list[float]:
    """Return, by state, the free compute weighted by the demand that no longer fits."""
    return [
        free * sum(part for part, moves in zip(popularity, table.options, strict=True) if not moves[state])
        for state, free in enumerate(compute)
    ]
