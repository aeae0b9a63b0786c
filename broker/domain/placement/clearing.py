"""Whole cards on any node: empty ones first, then those that it costs least to empty."""

from collections.abc import Sequence
from dataclasses import replace

from broker.domain.placement.budgets import Budget
from broker.domain.placement.draining import drain, emptied_cheapest
from broker.domain.placement.evacuating import Evacuation
from broker.domain.placement.fleet import Fleet, Slice
from broker.domain.placement.moving import Draft
from broker.domain.placement.tables import EMPTY


def clear(
    fleet: Fleet, wanted: Sequence[Slice], *, gain: int | None = None, budget: Budget | None = None
) -> Evacuation | None:
    """Place whole cards wherever they can be had, by emptying as many as are short, or change nothing and return None.

    What lies on a card that is emptied goes beside others, never to an empty card: that would win nothing.
    """
    draft, table = Draft(fleet), fleet.table
    start = table.moves[wanted[0].profile][EMPTY][0].start
    cards = sorted(fleet.buckets.cards[EMPTY])[: len(wanted)]
    for member, card in zip(wanted, cards, strict=False):
        draft.put(member.at(start), card)
    filled: set[int] = set()
    for card in emptied_cheapest(fleet):
        if len(cards) == len(wanted):
            break
        mark = draft.mark
        if card in filled or not drain(draft, card):
            continue
        filled.update(to for to, _ in draft.put_down(mark))
        draft.put(wanted[len(cards)].at(start), card)
        cards.append(card)
    steps = draft.moved()
    moved = [fleet.on[step.to_card][step.to_start] for step in steps]
    dear = gain is not None and sum(step.cost for step in steps) > gain
    if len(cards) < len(wanted) or dear or (budget is not None and not budget.affords(moved)):
        draft.undo()
        return None
    if budget is not None:
        budget.spend(moved)
    if steps:
        steps[-1] = replace(steps[-1], gain=gain or 0)
    return Evacuation(tuple(cards), tuple(steps))
