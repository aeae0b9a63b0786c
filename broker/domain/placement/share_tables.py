"""Cards that are shared without partitions, as vGPU or in turns: states that count, for the same buckets.

Nothing lies anywhere on such a card, so a state is how many units of memory and how many parts of its time are
taken; where all that are on a card must be of one size, as vGPUs of the same frame buffer, the size as well.
"""

from collections.abc import Sequence
from typing import NamedTuple

from broker.domain.placement.tables import NOWHERE, Afters, Move, Table
from broker.domain.profiles import Profile

PARTS = 20  # of a card's time: a state for every twentieth


class Taken(NamedTuple):
    """What is taken of a card."""

    memory: int = 0
    parts: int = 0
    size: int = 0  # that all on it must have; 0 while they may differ or there are none


class _Card:
    """A card of so many units and parts, and what shares do to it."""

    def __init__(self, grid: int, *, parts: int, one_size: bool) -> None:
        self.grid, self.parts, self.one_size = grid, parts, one_size

    def bits(self, taken: Taken) -> int:
        """Return a number whose lowest bits are the units taken, as in every table."""
        above = taken.parts * (self.grid + 1) + taken.size
        return ((1 << taken.memory) - 1) | (above << (self.grid + 1))

    def put(self, taken: Taken, share: Profile) -> Taken | None:
        memory, parts = taken.memory + share.memory, taken.parts + share.compute
        if memory > self.grid or parts > self.parts or (taken.size and taken.size != share.memory):
            return None
        return Taken(memory, parts, share.memory if self.one_size else 0)

    def gone(self, taken: Taken, share: Profile) -> Taken | None:
        memory, parts = taken.memory - share.memory, taken.parts - share.compute
        if memory < 0 or parts < 0 or (taken.size and taken.size != share.memory):
            return None
        return Taken(memory, parts, taken.size if memory else 0)


def share_table(shares: Sequence[Profile], grid: int, *, parts: int = PARTS, one_size: bool = False) -> Table:
    """Number every state of a card that is sold in these shares; `compute` counts parts of its time here.

    Raises ValueError for a share that takes no memory or more than there is: it could not be told apart from none.
    """
    for share in shares:
        if not (0 < share.memory <= grid and 0 <= share.compute <= parts):
            raise ValueError(
                f"{share.name} takes {share.memory} of {grid} units and {share.compute} of {parts} parts of a card;"
                " sell it in a share that a card has"
            )
    card = _Card(grid, parts=parts, one_size=one_size)
    found = {card.bits(Taken()): Taken()}
    new = [Taken()]
    while new:
        taken = new.pop()
        for share in shares:
            after = card.put(taken, share)
            if after and card.bits(after) not in found:
                found[card.bits(after)] = after
                new.append(after)
    states = tuple(sorted(found))
    number = {bits: n for n, bits in enumerate(states)}

    def afters(to: Sequence[Taken | None]) -> Afters:
        return {
            0: (*(NOWHERE if each is None else number.get(card.bits(each), NOWHERE) for each in to), NOWHERE)
        }

    put = tuple(afters([card.put(found[bits], share) for bits in states]) for share in shares)
    gone = tuple(afters([card.gone(found[bits], share) for bits in states]) for share in shares)
    moves = tuple(
        tuple((Move(0, after),) if after != NOWHERE else () for after in its[0][: len(states)]) for its in put
    )
    return Table(grid, tuple(shares), states, moves, number, put, gone)
