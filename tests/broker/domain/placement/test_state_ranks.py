"""The ranking of GPU states by the cost of a placement."""

from broker.domain.placement.costs.state_ranks import NO_OPTION, rank_states
from broker.domain.placement.costs.state_tables import PlacementOption, StateTable, build_state_table
from tests.broker.domain.fleet import A30, H100, plain


def fullest(table: StateTable, profile: int, state: int, move: PlacementOption) -> tuple[int, ...]:
    return (table.free_units(move.next_state), -move.start)


TABLE = build_state_table(plain(H100), 8)
RANKS = rank_states(TABLE, fullest)


def test_states_are_ordered_by_cost_and_then_by_number() -> None:
    for profile in range(len(TABLE.profiles)):
        costs = RANKS.cost[profile]
        assert list(costs) == sorted(costs)
        keys = [(cost, state) for cost, state in zip(costs, RANKS.states_by_rank[profile], strict=True)]
        assert keys == sorted(keys)


def test_every_fitting_state_is_ranked_once_with_its_cheapest_option() -> None:
    for profile, moves in enumerate(TABLE.options):
        assert sorted(RANKS.states_by_rank[profile]) == [state for state, its in enumerate(moves) if its]
        for state, its in enumerate(moves):
            assert RANKS.fits(profile, state) == bool(its)
            best = RANKS.best_option[profile][state]
            assert best == (min(its, key=lambda m: fullest(TABLE, profile, state, m)) if its else NO_OPTION)


def test_every_state_has_its_own_bit_per_profile() -> None:
    ranks = rank_states(build_state_table(plain(A30), 4), fullest)
    for profile, order in enumerate(ranks.states_by_rank):
        assert [ranks.rank_bit[profile][state] for state in order] == [1 << rank for rank in range(len(order))]
