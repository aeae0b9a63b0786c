"""Rank GPU states by placement cost, with the best option of each profile."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from broker.domain.placement.costs.state_tables import EMPTY, PlacementOption, StateTable

# Cost of placing a profile (number) on a GPU in a state by an option; lower is better. Costs of a rule are comparable.
CostRule = Callable[[StateTable, int, int, PlacementOption], tuple[Any, ...]]
NO_OPTION = PlacementOption(-1, -1)


@dataclass(frozen=True)
class StateRanks:
    """Placement order of one profile set: by profile, the states from cheapest to most expensive."""

    table: StateTable
    states_by_rank: tuple[tuple[int, ...], ...]  # only the states on which the profile fits
    best_option: tuple[tuple[PlacementOption, ...], ...]  # by state
    cost: tuple[tuple[tuple[Any, ...], ...], ...]  # in the order of `states_by_rank`
    # By state, NO_STATE as the last: bit of its rank in the profile's bitmap; 0 where the profile does not fit.
    rank_bit: tuple[tuple[int, ...], ...]
    equal_options: tuple[tuple[tuple[PlacementOption, ...], ...], ...]  # by state: the options as cheap as the best
    # By rank, the first rank of the same cost; an empty GPU never counts as equal to one in use.
    first_equal_rank: tuple[tuple[int, ...], ...]

    def fits(self, profile: int, state: int) -> bool:
        return self.rank_bit[profile][state] != 0


def rank_states(table: StateTable, rule: CostRule) -> StateRanks:
    """Rank every state for every profile by a rule; lower numbers win ties."""
    order, best, cost, bits, equal, first_equal = [], [], [], [], [], []
    for profile in range(len(table.profiles)):
        ranked = []
        equal_by_state: list[tuple[PlacementOption, ...]] = [()] * len(table.states)
        for state, options in enumerate(table.options[profile]):
            if options:
                priced = sorted((rule(table, profile, state, option), option) for option in options)
                equal_by_state[state] = tuple(option for price, option in priced if price == priced[0][0])
                ranked.append((*priced[0], state))
        ranked.sort(key=lambda each: (each[0], each[2]))
        best_by_state, bit_by_state = [NO_OPTION] * len(table.states), [0] * (len(table.states) + 1)
        for rank, (_, option, state) in enumerate(ranked):
            best_by_state[state], bit_by_state[state] = option, 1 << rank
        order.append(tuple(state for _, _, state in ranked))
        cost.append(tuple(price for price, _, _ in ranked))
        best.append(tuple(best_by_state))
        bits.append(tuple(bit_by_state))
        equal.append(tuple(equal_by_state))
        first_equal.append(_first_of_equal([(price, state == EMPTY) for price, _, state in ranked]))
    return StateRanks(
        table, tuple(order), tuple(best), tuple(cost), tuple(bits), tuple(equal), first_equal_rank=tuple(first_equal)
    )


def _first_of_equal(costs: Sequence[tuple[Any, ...]]) -> tuple[int, ...]:
    """Return, for each of the sorted costs, the position of the first equal one."""
    first: list[int] = []
    for rank, cost in enumerate(costs):
        first.append(first[-1] if rank and costs[rank - 1] == cost else rank)
    return tuple(first)
