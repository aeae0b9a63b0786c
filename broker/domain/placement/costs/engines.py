"""Placement engines: our rule, and two older ones for comparison in replays."""

from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache

from broker.domain.geometry.profiles import Profile
from broker.domain.placement.costs.bid_price_rule import PlacementCost, bid_price_ranks, max_remaining_value
from broker.domain.placement.costs.state_ranks import CostRule, StateRanks, rank_states
from broker.domain.placement.costs.state_tables import PlacementOption, StateTable, build_state_table


class PlacementEngine(StrEnum):
    """The placement rules by name."""

    BID_PRICE = "bid-price"  # our rule
    BEST_FIT = "best-fit"  # where fewest compute slices stay free; among equals the first GPU
    FIRST_FIT = "first-fit"  # the first GPU on which it fits

    @property
    def picks_lowest_gpu_id(self) -> bool:
        """Tell whether the first of all equally cheap GPUs is taken, whatever their states."""
        return self is not PlacementEngine.BID_PRICE


@lru_cache(maxsize=1024)
def ranks_for_engine(
    engine: PlacementEngine,
    profiles: tuple[Profile, ...],
    grid: int,
    prices: Sequence[float],
    *,
    counted: bool,
    existing: tuple[Profile, ...] = (),
) -> StateRanks:
    """Return the ranks of a rule; the older rules ignore prices and slice counts."""
    if engine is PlacementEngine.BID_PRICE:
        return bid_price_ranks(profiles, grid, tuple(prices), counted=counted, existing=existing)
    table = build_state_table(profiles, grid, existing=existing)
    return rank_states(table, _fit_rule(table, best=engine is PlacementEngine.BEST_FIT))


def _fit_rule(table: StateTable, *, best: bool) -> CostRule:
    """Return the best-fit or first-fit rule, which starts slices in the vendor's order.

    That is where most placements stay legal; among equals the highest unit.
    """
    legal = [sum(len(its[state]) for its in table.options) for state in range(len(table.states))]
    left = [int(most) for most in max_remaining_value(table, [profile.compute for profile in table.profiles])]

    def cost(_: StateTable, profile: int, state: int, move: PlacementOption) -> PlacementCost:
        first = min(table.options[profile][state], key=lambda each: (-legal[each.next_state], -each.start))
        return PlacementCost(
            uses_empty_gpu=False,  # these rules do not treat empty GPUs differently
            value_loss=float(move != first),
            remaining_compute=left[move.next_state] if best else 0,
            negative_slice_count=0,
            nearby_price_loss=0.0,
            stranded_compute_increase=0.0,
            remaining_units=0,
        )

    return cost
