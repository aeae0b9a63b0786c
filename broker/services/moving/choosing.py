"""Which leases should move so that cards become whole again: what a plan says before it is written down."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from broker.domain.placement.fleet import Fleet
from broker.domain.placement.moving import Step
from broker.domain.placement.prices import default
from broker.domain.placement.rules import best_fill

MOST_MOVES = 12  # in one plan: as many as an operator looks through
HORIZON_S = 3600  # the room must be worth more within an hour than the programs that stand still
WHOLE = 1000


@dataclass(frozen=True)
class Choice:
    """The steps in their order, each with its price in seconds and its gain in thousandths of a whole card."""

    steps: tuple[Step, ...]
    emptied: int

    @property
    def cost_s(self) -> int:
        return sum(step.cost for step in self.steps)

    @property
    def gain_milli(self) -> int:
        return sum(step.gain for step in self.steps)


def choose(fleet: Fleet, *, most: int = MOST_MOVES) -> Choice:
    """Empty cards on which little lies, the cheapest first, while it pays; the fleet is left as it would be then."""
    table = fleet.table
    worth = best_fill(table, default(table.profiles, table.grid))
    steps: list[Step] = []
    emptied = 0
    filled: set[int] = set()  # nothing is moved twice
    for card in _sources(fleet):
        if card in filled or len(steps) + len(fleet.on[card]) > most:
            continue
        before = list(fleet.buckets.state)
        freed = _emptied(fleet, card)
        if not freed:
            continue
        concerned = {card, *(step.to_card for step in freed)}
        won = sum(worth[fleet.buckets.state[each]] - worth[before[each]] for each in concerned)
        # A card that can be sold whole, and what is easier or harder to sell elsewhere for that.
        gain = WHOLE + int(won * WHOLE // worth[0])
        if not _pays(fleet, freed, gain):
            _take_back(fleet, freed)
            continue
        emptied += 1
        filled |= concerned
        steps += _shared(freed, gain)
    return Choice(tuple(steps), emptied)


def _sources(fleet: Fleet) -> list[int]:
    """Name cards that could be emptied, those first of which most room is free for the least standing still."""
    able = [card for card, on in enumerate(fleet.on) if on and all(s.cost is not None for s in on.values())]

    def price(card: int) -> tuple[int, int, int]:
        cost = sum(piece.cost or 0 for piece in fleet.on[card].values())
        return fleet.table.grid - fleet.table.free(fleet.buckets.state[card]), cost, card

    return sorted(able, key=price)


def _emptied(fleet: Fleet, card: int) -> list[Step]:
    """Move all of a card beside what lies on others, the largest first; nothing where it does not all fit."""
    pieces = sorted(fleet.on[card].values(), key=lambda s: (-fleet.table.profiles[s.profile].memory, s.start))
    for piece in pieces:  # all of them first: nothing comes back, for no empty card is opened
        fleet.lift(piece.allocation)
    steps: list[Step] = []
    for n, piece in enumerate(pieces):
        seat = fleet.place(piece, opening=False)
        if seat is None:
            _take_back(fleet, steps)
            for left in pieces[n:]:
                fleet.hold(card, left)
            return []
        steps.append(Step(piece.allocation, piece.profile, card, piece.start, *seat, cost=piece.cost or 0))
    return steps


def _take_back(fleet: Fleet, steps: Sequence[Step]) -> None:
    for step in reversed(steps):
        fleet.hold(step.card, fleet.lift(step.allocation)._replace(start=step.start))


def _pays(fleet: Fleet, steps: Sequence[Step], gain: int) -> bool:
    """Tell whether the room won in an hour is worth more than the cards' time that passes with nobody's program."""
    idle = sum(step.cost * fleet.table.profiles[step.profile].memory for step in steps)
    return gain * HORIZON_S * fleet.table.grid > idle * WHOLE


def _shared(steps: Sequence[Step], gain: int) -> list[Step]:
    """Give each step its part of what all of them win together: a card with one slice left is worth no more."""
    part, rest = divmod(gain, len(steps))
    return [replace(step, gain=part + (n < rest)) for n, step in enumerate(steps)]
