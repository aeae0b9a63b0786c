"""Room for a slice that fits nowhere: a few small ones are moved out of its way, all of them or none."""

from dataclasses import dataclass, replace
from itertools import islice

from broker.domain.placement.budgets import Budget
from broker.domain.placement.fleet import Fleet, Slice
from broker.domain.placement.moving import Draft, Step
from broker.domain.placement.ordering import ordered


@dataclass(frozen=True, slots=True)
class Repack:
    """Where the slice goes once these steps have been taken, in this order."""

    card: int
    start: int
    steps: tuple[Step, ...]


def make_room(
    fleet: Fleet,
    wanted: Slice,
    *,
    slices: int = 2,
    candidates: int = 6,
    gain: int | None = None,
    budget: Budget | None = None,
) -> Repack | None:
    """Place a slice, by moving at most so many others if it fits nowhere, or change nothing and return None.

    The fleet is as after the last step then, and the slice is held. Ways whose moves together cost more than the gain
    are left out. Cards are tried in the order of what has to go: fewest slices, least compute, from the fullest.
    """
    if seat := fleet.place(wanted):
        return Repack(*seat, ())
    for way, card in islice(fleet.shapes.evictions(wanted.profile, slices), candidates):
        pieces = [fleet.on[card][start] for start in way.starts]
        if budget is not None and not budget.affords(pieces):
            continue
        if gain is not None and sum(piece.cost or 0 for piece in pieces) > gain:
            continue
        if repack := _out_of_its_way(fleet, wanted, card, pieces, gain or 0):
            if budget is not None:
                budget.spend(pieces)
            return repack
    return None


def _out_of_its_way(fleet: Fleet, wanted: Slice, card: int, pieces: list[Slice], gain: int) -> Repack | None:
    table, before = fleet.table, fleet.table.states[fleet.buckets.state[card]]
    draft = Draft(fleet)
    for piece in pieces:
        draft.lift(piece.allocation)
    start = fleet.ranks.best[wanted.profile][fleet.buckets.state[card]].start
    draft.put(wanted._replace(start=start), card)
    # Nothing is empty when something fits nowhere, so no card is opened here.
    if all(
        draft.place(piece) for piece in sorted(pieces, key=lambda each: -table.profiles[each.profile].memory)
    ):
        steps = draft.moved()
        taken = {step.to_card: table.states[fleet.buckets.state[step.to_card]] for step in steps}
        for step in steps:
            taken[step.to_card] &= ~table.bits(step.profile, step.to_start)
        if in_order := ordered(table, taken | {card: before}, steps, None):
            in_order[-1] = replace(in_order[-1], gain=gain)
            return Repack(card, start, tuple(in_order))
    draft.undo()
    return None
