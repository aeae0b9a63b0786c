"""Bid-price placement cost: the value of the slices that no longer fit.

Free units are worth the most valuable slices that still fit in them.
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

    uses_empty_gpu: bool  # an empty GPU is the last resort: it could still be sold whole
    value_loss: float  # decrease of the value of the best slices that still fit
    remaining_compute: int  # compute slices that can still be used on the GPU
    negative_slice_count: int  # a GPU with few slices may soon be empty, so it is used later
    nearby_price_loss: float  # the value loss at nearby prices: among equal losses keep more choices
    stranded_compute_increase: float  # increase of free compute that the demand cannot use
    remaining_units: int

    @property
    def comparable_across_layouts(self) -> tuple[bool, float, int]:
        """Return the part that is comparable across differently partitioned GPUs.

        Prices are the same for one model; tie breakers are not.
        """
        return self[:3]


def bid_price_rule(table: StateTable, prices: Sequence[float], popularity: Sequence[float] | None = None) -> CostRule:
    """Return a bid-price cost function for these profile prices; integer prices stay exact.

    `popularity` is each profile's part of the demand; without it all are equally popular. Only a table
    that counts slices tells GPUs with few slices from those with many.
    """
    best, nearby = max_remaining_value(table, prices), _remaining_value_nearby(table, prices)
    compute = [int(most) for most in max_remaining_value(table, [profile.compute for profile in table.profiles])]
    stranded = _stranded_compute(table, compute, popularity) if popularity else [0.0] * len(table.states)

    def cost(_: StateTable, profile: int, state: int, move: PlacementOption) -> PlacementCost:
        return PlacementCost(
            uses_empty_gpu=state == EMPTY,
            value_loss=round(best[state] - best[move.next_state], PRICE_DECIMALS),
            remaining_compute=compute[move.next_state],
            negative_slice_count=-table.slice_count(move.next_state),
            nearby_price_loss=round(nearby[state] - nearby[move.next_state], PRICE_DECIMALS),
            stranded_compute_increase=round(stranded[move.next_state] - stranded[state], PRICE_DECIMALS),
            remaining_units=table.free_units(move.next_state),
        )

    return cost


@lru_cache(maxsize=1024)
def bid_price_ranks(
    profiles: tuple[Profile, ...],
    grid: int,
    prices: tuple[float, ...],
    popularity: tuple[float, ...] | None = None,
    *,
    counted: bool = False,
    existing: tuple[Profile, ...] = (),
) -> StateRanks:
    """Return the ranks of this rule, shared by GPUs of one kind and price list."""
    table = build_state_table(profiles, grid, counted=counted, existing=existing)
    return rank_states(table, bid_price_rule(table, prices, popularity))


def max_remaining_value(table: StateTable, prices: Sequence[float]) -> list[float]:
    """Return, by state, the greatest total price of slices that still fit."""
    best: list[float] = [0] * len(table.states)
    # One more slice always gives a higher state number, so later states are computed already.
    for state in reversed(range(len(table.states))):
        for price, moves in zip(prices, table.options, strict=True):
            for move in moves[state]:
                best[state] = max(best[state], price + best[move.next_state])
    return best


def _remaining_value_nearby(table: StateTable, prices: Sequence[float]) -> list[float]:
    """Return, by state, the sum of remaining values with each price in turn lowered.

    Each is lowered by a tenth. Higher prices would keep room for the one way of filling a GPU that just
    became dear; lower ones show what is left when one way is not wanted. A filling fleet takes 0.2 to
    0.3 % more by it.
    """
    total = [0.0] * len(table.states)
    for profile in range(len(prices)):
        lowered = [9 * price if p == profile else 10 * price for p, price in enumerate(prices)]
        total = [a + b for a, b in zip(total, max_remaining_value(table, lowered), strict=True)]
    return total


def _stranded_compute(table: StateTable, compute: Sequence[int], popularity: Sequence[float]) -> list[float]:
    """Return, by state, the free compute weighted by the demand that no longer fits."""
    return [
        free * sum(part for part, moves in zip(popularity, table.options, strict=True) if not moves[state])
        for state, free in enumerate(compute)
    ]
