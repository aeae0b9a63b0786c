"""The cost rules of a placement, and their tie-breaks."""

from functools import cache

import pytest

from broker.domain.geometry.gpu_models import GpuModelSpec
from broker.domain.geometry.profiles import share_profiles
from broker.domain.lifecycle.states import Isolation
from broker.domain.placement.costs import slice_prices
from broker.domain.placement.costs.bid_price_rule import (
    PlacementCost,
    bid_price_ranks,
    bid_price_rule,
    max_remaining_value,
)
from broker.domain.placement.costs.state_ranks import rank_states
from broker.domain.placement.costs.state_tables import EMPTY, StateTable, build_state_table
from tests.broker.domain.fleet import A30, H100, ONE, ONE_ME, PRO_6000, SEVEN, plain

PROFILES = plain(H100)
TABLE = build_state_table(PROFILES, 8)
WORTH = slice_prices.default_prices(PROFILES, 8)


def state_with(table: StateTable, *held: tuple[str, int]) -> int:
    state, names = EMPTY, [profile.name for profile in table.profiles]
    for name, start in held:
        state = table.state_with[names.index(name)][start][state]
    return state


@pytest.mark.parametrize("model", [H100, A30, PRO_6000], ids=lambda m: m.name)
def test_the_best_fill_matches_exhaustive_search(model: GpuModelSpec) -> None:
    profiles = plain(model)
    table, worth = build_state_table(profiles, model.grid), [7 * n * n + 3 for n in range(len(profiles))]

    @cache
    def every_way(state: int) -> frozenset[int]:
        """The worths of all that can be added, one by one and in any order."""
        more = {
            worth[p] + rest
            for p in range(len(profiles))
            for move in table.options[p][state]
            for rest in every_way(move.next_state)
        }
        return frozenset({0, *more})

    assert max_remaining_value(table, worth) == [max(every_way(state)) for state in range(len(table.states))]


def test_free_compute_is_derived_from_the_occupied_units() -> None:
    rule = bid_price_rule(TABLE, WORTH)
    for profile, moves in enumerate(TABLE.options):
        for state, its in enumerate(moves):
            for move in its:
                mask = TABLE.states[move.next_state]
                assert rule(TABLE, profile, state, move)[2] == 7 - (mask & 0x7F).bit_count()


def test_a_slice_costs_the_difference_of_the_best_fills_before_and_after() -> None:
    rule, best = bid_price_rule(TABLE, WORTH), max_remaining_value(TABLE, WORTH)
    four, state = 4, state_with(TABLE, ("2g.20gb", 4))
    (move,) = TABLE.options[four][state]
    cost = PlacementCost(*rule(TABLE, four, state, move))
    assert cost[:4] == (False, best[state] - best[move.next_state], 1, 0)
    assert (cost.stranded_compute_increase, cost.remaining_units) == (0, 2)
    assert isinstance(best[state], int)


def test_losses_that_differ_only_by_noise_are_equal() -> None:
    noisy = [price / 56_000 + 1e-10 * n for n, price in enumerate(WORTH)]
    exact = [price / 56_000 for price in WORTH]
    assert (
        rank_states(TABLE, bid_price_rule(TABLE, noisy)).states_by_rank
        == rank_states(TABLE, bid_price_rule(TABLE, exact)).states_by_rank
    )


def test_at_equal_losses_the_gpu_with_more_slices_is_chosen() -> None:
    names = [profile.name for profile in PROFILES]
    table = build_state_table(PROFILES, 8, counted=True)
    assert (table.slice_count(EMPTY), len(table.states)) == (0, 365)
    whole = table.state_with[names.index("4g.40gb")][0][EMPTY]
    pairs = state_with(table, ("2g.20gb", 0), ("2g.20gb", 2))
    assert (table.slice_count(whole), table.slice_count(pairs)) == (1, 2)
    assert table.slice_bits(names.index("4g.40gb"), 0) == table.states[pairs] & 0xFF
    order = rank_states(table, bid_price_rule(table, WORTH)).states_by_rank
    for profile in order:
        fitting = [state for state in profile if state in (whole, pairs)]
        assert fitting in ([], [pairs, whole])
    assert table.state_after_removing(table.state_after_removing(pairs, 2, 0), 2, 2) == EMPTY
    with pytest.raises(KeyError):
        table.state_after_removing(whole, 2, 0)  # half of a 4g would be a GPU with nothing on it that is not empty
    plain_order = rank_states(TABLE, bid_price_rule(TABLE, WORTH)).states_by_rank
    kept = [list(dict.fromkeys(table.states[state] & 0xFF for state in its)) for its in order]
    assert [sorted(its) for its in kept] == [sorted(TABLE.states[s] for s in its) for its in plain_order]


def test_equal_losses_are_ordered_by_the_remaining_options() -> None:
    rule = bid_price_rule(TABLE, WORTH)
    for profile, moves in enumerate(TABLE.options):
        for state, its in enumerate(moves):
            for move in its:
                cost = PlacementCost(*rule(TABLE, profile, state, move))
                # Ten times the loss, less at most a tenth for each price that is lower, and never a gain.
                assert 0 <= cost.nearby_price_loss <= 10 * len(PROFILES) * cost.value_loss + max(WORTH)


def test_popularity_breaks_ties_by_demand() -> None:
    wanted = tuple(float(profile.name == "3g.40gb") for profile in PROFILES)
    rule = bid_price_rule(TABLE, [0] * 6, wanted)
    right = state_with(TABLE, ("4g.40gb", 0))
    late = next(move for move in TABLE.options[0][right] if move.start == 6)
    # With the last half touched no 3g fits any more: the two remaining compute slices serve no request.
    assert rule(TABLE, 0, right, late)[5] == 2
    # Taking one of them is no loss to anybody then.
    assert rule(TABLE, 0, late.next_state, TABLE.options[0][late.next_state][-1])[5] == -1


def test_an_empty_gpu_is_the_last_resort_for_every_profile() -> None:
    ranks = bid_price_ranks(PROFILES, 8, WORTH)
    assert all(order[-1] == EMPTY for order in ranks.states_by_rank)
    assert bid_price_ranks(PROFILES, 8, WORTH) is ranks


def test_a_quarter_is_placed_beside_another_before_using_a_free_half_or_a_new_gpu() -> None:
    soft = share_profiles(grid=8, isolation=Isolation.SOFT)
    ranks = bid_price_ranks(soft, 8, slice_prices.default_prices(soft, 8, compute=7))
    table, quarter = ranks.table, 1
    lone, three = (state_with(table, *held) for held in ([("quarter", 0)], [("half", 0), ("quarter", 4)]))
    half = state_with(table, ("half", 0))
    assert [s for s in ranks.states_by_rank[quarter] if s in (lone, half, three, EMPTY)] == [three, lone, half, EMPTY]
    assert ranks.best_option[quarter][lone].start == 2


def test_a_media_engine_slice_has_the_price_of_its_plain_profile() -> None:
    assert len(set(slice_prices.default_prices((ONE, ONE_ME), 8, compute=7))) == 1
    assert slice_prices.default_prices((SEVEN,), 8) == (56_056,)
