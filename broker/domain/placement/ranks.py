"""In which order the states of cards are asked for each profile, and where on such a card it goes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from broker.domain.placement.tables import Move, Table

# What putting a profile on a card in a state by a move costs; smaller is better. All of a rule's answers compare.
Rule = Callable[[Table, int, int, Move], tuple[Any, ...]]
NONE = Move(-1, -1)


@dataclass(frozen=True)
class Ranks:
    """By profile: the states on which it fits, best first, with the best way on each.

    `bit` is by state what to set in a profile's map while any card is in it (nothing for NOWHERE, the last one),
    `best` the move on it.
    """

    table: Table
    order: tuple[tuple[int, ...], ...]
    best: tuple[tuple[Move, ...], ...]
    cost: tuple[tuple[tuple[Any, ...], ...], ...]  # as `order` is
    bit: tuple[tuple[int, ...], ...]

    def fits(self, profile: int, state: int) -> bool:
        return self.bit[profile][state] != 0


def ranked(table: Table, rule: Rule) -> Ranks:
    """Rank every state for every profile by a rule; of equal states the one with the lower number comes first."""
    order, best, cost, bit = [], [], [], []
    for profile in range(len(table.profiles)):
        found = []
        for state, moves in enumerate(table.moves[profile]):
            if moves:
                found.append((*min((rule(table, profile, state, move), move) for move in moves), state))
        found.sort(key=lambda each: (each[0], each[2]))
        seats, bits = [NONE] * len(table.states), [0] * (len(table.states) + 1)
        for rank, (_, move, state) in enumerate(found):
            seats[state], bits[state] = move, 1 << rank
        order.append(tuple(state for _, _, state in found))
        cost.append(tuple(price for price, _, _ in found))
        best.append(tuple(seats))
        bit.append(tuple(bits))
    return Ranks(table, tuple(order), tuple(best), tuple(cost), tuple(bit))
