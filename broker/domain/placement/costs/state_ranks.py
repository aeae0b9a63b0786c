"""Rank the states of GPUs for each profile, with its best start on each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from broker.domain.placement.costs.state_tables import EMPTY, PlacementOption, StateTable

# The cost of placing a profile on a GPU in a state by an option; smaller is better. All costs of a rule are comparable.
CostRule = Callable[[StateTable, int, int, PlacementOption], tuple[Any, ...]]
NO_OPTION = PlacementOption(-1, -1)


@dataclass(frozen=True)
class StateRanks:
    """By profile, the states on which it fits, best first.

    `bit` is by state what to set in a profile's map while any GPU is in it (nothing for NOWHERE, the
    last one), `best` the option on it, `alike` all options on it that cost no more than the best, which
    is the first of them. `level` is by rank the first of the ranks that cost the same; opening an empty
    GPU never counts as the same cost as not opening one.
    """

    table: StateTable
    order: tuple[tuple[int, ...], ...]
    best: tuple[tuple[PlacementOption, ...], ...]
    cost: tuple[tuple[tuple[Any, ...], ...], ...]  # in the order of `order`
    bit: tuple[tuple[int, ...], ...]
    alike: tuple[tuple[tuple[PlacementOption, ...], ...], ...]
    level: tuple[tuple[int, ...], ...]

    def fits(self, profile: int, state: int) -> bool:
        return self.bit[profile][state] != 0


def rank_states(table: StateTable, rule: CostRule) -> StateRanks:
    """Rank every state for every profile by a rule; lower numbers win ties."""
    order, best, cost, bit, alike, level = [], [], [], [], [], []
    for profile in range(len(table.profiles)):
        found = []
        ways: list[tuple[PlacementOption, ...]] = [()] * len(table.states)
        for state, moves in enumerate(table.moves[profile]):
            if moves:
                priced = sorted((rule(table, profile, state, move), move) for move in moves)
                ways[state] = tuple(move for price, move in priced if price == priced[0][0])
                found.append((*priced[0], state))
        found.sort(key=lambda each: (each[0], each[2]))
        slots, bits = [NO_OPTION] * len(table.states), [0] * (len(table.states) + 1)
        for rank, (_, move, state) in enumerate(found):
            slots[state], bits[state] = move, 1 << rank
        order.append(tuple(state for _, _, state in found))
        cost.append(tuple(price for price, _, _ in found))
        best.append(tuple(slots))
        bit.append(tuple(bits))
        alike.append(tuple(ways))
        level.append(_first_of_equal([(price, state == EMPTY) for price, _, state in found]))
    return StateRanks(table, tuple(order), tuple(best), tuple(cost), tuple(bit), alike=tuple(alike), level=tuple(level))


def _first_of_equal(costs: Sequence[tuple[Any, ...]]) -> tuple[int, ...]:
    """Return, for each of the sorted costs, the position of the first equal one."""
    first: list[int] = []
    for rank, cost in enumerate(costs):
        first.append(first[-1] if rank and costs[rank - 1] == cost else rank)
    return tuple(first)
