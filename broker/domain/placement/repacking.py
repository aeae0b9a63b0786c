"""Room for a slice that fits nowhere: a few small ones are moved out of its way, all of them or none."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from broker.domain.placement.budgets import Budget
from broker.domain.placement.fleet import Fleet, Slice
from broker.domain.placement.moving import Draft, Step
from broker.domain.placement.ordering import ordered
from broker.domain.placement.squeezing import squeeze, tries_for


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
    tries: Sequence[int] | None = None,
    gain: int | None = None,
    budget: Budget | None = None,
) -> Repack | None:
    """Place a slice, by moving a few others if it fits nowhere, or change nothing and return None.

    The fleet is as after the last step then, and the slice is held. Moves that together cost more than the gain, or
    than the budget allows, are not made. `tries` says how hard to look, as `squeeze` knows it.
    """
    if seat := fleet.place(wanted):
        return Repack(*seat, ())

    def may(pieces: list[Slice]) -> bool:
        return (gain is None or sum(piece.cost or 0 for piece in pieces) <= gain) and (
            budget is None or budget.affords(pieces)
        )

    draft = Draft(fleet)
    tries = tries_for(fleet.table, wanted.profile) if tries is None else tries
    if squeeze(draft, wanted, tries, may) and (steps := ordered(fleet.table, draft.moved())):
        if budget is not None:
            budget.spend(fleet.on[step.to_card][step.to_start] for step in steps)
        steps[-1] = replace(steps[-1], gain=gain or 0)
        return Repack(fleet.card[wanted.allocation], fleet.start[wanted.allocation], tuple(steps))
    draft.undo()
    return None
