"""A plan by which slices of a whole pool are moved together, so that cards become whole again: a dry run, no deed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from broker.domain.placement.budgets import Budget
from broker.domain.placement.draining import drain, emptied_cheapest
from broker.domain.placement.fleet import Fleet
from broker.domain.placement.mending import mend
from broker.domain.placement.minimum import min_cards
from broker.domain.placement.moving import Draft, Step
from broker.domain.placement.ordering import ordered
from broker.domain.placement.tables import EMPTY

TRIES = (6, 3)


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps in the order in which they can be taken, and how many cards are in use before and after."""

    reason: str
    steps: tuple[Step, ...]
    before: int
    after: int
    least: int | None  # the fewest cards that any plan could do with, where that is known

    @property
    def cost(self) -> int:
        return sum(step.cost for step in self.steps)

    @property
    def gain(self) -> int:
        return sum(step.gain for step in self.steps)

    @property
    def inverse(self) -> tuple[Step, ...]:
        """The steps that lead back once all have been taken."""
        return tuple(step.inverse for step in reversed(self.steps))


def defragment(
    fleet: Fleet,
    *,
    reason: str = "",
    gain: int | None = None,
    budget: Budget | None = None,
    tries: Sequence[int] = TRIES,
) -> Plan:
    """Plan how to empty as many cards as can be, those first whose slices cost least to move.

    `gain` is what one card more is worth: no card is emptied at a higher cost. Each card is emptied whole or not at
    all. Nothing on the fleet is changed, and the same slices on the same cards have the same plan.
    """
    draft, least = Draft(fleet.copy()), _least(fleet)
    before = draft.fleet.in_use
    _empty_cards(draft, emptied_cheapest(draft.fleet), (), least, gain, budget)
    simple, after = draft.mark, draft.fleet.in_use
    if after != least:
        sources = emptied_cheapest(draft.fleet)
        mend(draft, sources)
        _empty_cards(draft, sources, tries, least, gain, budget)
        if draft.fleet.in_use == after:
            draft.undo(simple)  # mending alone empties no card
    steps = ordered(fleet.table, draft.moved(), min(fleet.buckets.cards[EMPTY], default=None))
    if steps is None:  # at first everything went to a place that was free from the start
        draft.undo(simple)
        steps = draft.moved()
    return Plan(reason, _gains(fleet, steps, gain or 0), before, draft.fleet.in_use, least)


def _least(fleet: Fleet) -> int | None:
    counts = [0] * len(fleet.table.profiles)
    for on in fleet.on:
        for piece in on.values():
            counts[piece.profile] += 1
    try:
        return min_cards(fleet.table, counts)
    except ValueError:  # no closed form is known for cards of this kind
        return None


def _empty_cards(
    draft: Draft,
    sources: Sequence[int],
    tries: Sequence[int],
    enough: int | None,
    gain: int | None,
    budget: Budget | None,
) -> None:
    """Empty one card after the other, each whole or not at all, until there is nothing left to win."""
    fleet = draft.fleet
    stuck: set[int] = set()  # shapes that found no room: it becomes less from card to card
    filled: set[int] = set()
    for card in sources:
        if fleet.in_use == enough:
            return
        shape, mark = fleet.shapes.of[card], draft.mark
        if card in filled or shape in stuck:
            continue
        if not drain(draft, card, tries):
            stuck.add(shape)
            continue
        put = draft.put_down(mark)
        pieces = [piece for _, piece in put]
        dear = gain is not None and sum(piece.cost or 0 for piece in pieces) > gain
        if dear or (budget is not None and not budget.affords(pieces)):
            draft.undo(mark)
            continue
        if budget is not None:
            budget.spend(pieces)
        filled.update(to for to, _ in put)


def _gains(fleet: Fleet, steps: Sequence[Step], gain: int) -> tuple[Step, ...]:
    """Let the step that empties a card say what that is worth."""
    on = {step.card: len(fleet.on[step.card]) for step in steps}
    for step in steps:
        on[step.to_card] = on.get(step.to_card, len(fleet.on[step.to_card])) + 1
        on[step.card] -= 1
    last = {step.card: number for number, step in enumerate(steps) if fleet.on[step.card]}
    return tuple(
        replace(step, gain=gain) if last.get(step.card) == number and not on[step.card] else step
        for number, step in enumerate(steps)
    )
