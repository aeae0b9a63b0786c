"""In which order the states of cards are asked for each profile, and where on such a card it goes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from broker.domain.placement.tables import EMPTY, Move, Table

# What putting a profile on a card in a state by a move costs; smaller is better. All of a rule's answers compare.
Rule = Callable[[Table, int, int, Move], tuple[Any, ...]]
NONE = Move(-1, -1)


@dataclass(frozen=True)
class Ranks:
    """By profile: the states on which it fits, best first, with the best way on each.

    `bit` is by state what to set in a profile's map while any card is in it (nothing for NOWHERE, the last one),
    `best` the move on it, `alike` all moves on it that cost no more than the best, which is the first of them.
    `level` is by rank the first of the ranks that cost the same; to open an empty card is never the same as not to.
    """

    table: Table
    order: tuple[tuple[int, ...], ...]
    best: tuple[tuple[Move, ...], ...]
    cost: tuple[tuple[tuple[Any, ...], ...], ...]  # as `order` is
    bit: tuple[tuple[int, ...], ...]
    alike: tuple[tuple[tuple[Move, ...], ...], ...]
    level: tuple[tuple[int, ...], ...]

    def fits(self, profile: int, state: int) -> bool:
        return self.bit[profile][state] != 0


def ranked(table: Table, rule: Rule) -> Ranks:
    """Rank every state for every profile by a rule; of equal states the one with the lower number comes first."""
    order, best, cost, bit, alike, level = [], [], [], [], [], []
    for profile in range(len(table.profiles)):
        found = []
        ways: list[tuple[Move, ...]] = [()] * len(table.states)
        for state, moves in enumerate(table.moves[profile]):
            if moves:
                priced = sorted((rule(table, profile, state, move), move) for move in moves)
                ways[state] = tuple(move for price, move in priced if price == priced[0][0])
                found.append((*priced[0], state))
        found.sort(key=lambda each: (each[0], each[2]))
        seats, bits = [NONE] * len(table.states), [0] * (len(table.states) + 1)
        for rank, (_, move, state) in enumerate(found):
            seats[state], bits[state] = move, 1 << rank
        order.append(tuple(state for _, _, state in found))
        cost.append(tuple(price for price, _, _ in found))
        best.append(tuple(seats))
        bit.append(tuple(bits))
        alike.append(tuple(ways))
        level.append(_levels([(price, state == EMPTY) for price, _, state in found]))
    return Ranks(
        table, tuple(order), tuple(best), tuple(cost), tuple(bit), alike=tuple(alike), level=tuple(level)
    )


def _levels(costs: Sequence[tuple[Any, ...]]) -> tuple[int, ...]:
    """Return for each of the costs, which are in order, where the first one equal to it stands."""
    first: list[int] = []
    for rank, cost in enumerate(costs):
        first.append(first[-1] if rank and costs[rank - 1] == cost else rank)
    return tuple(first)
