"""After a release: what little is left on a card goes elsewhere, so that the card is whole again."""

from broker.domain.placement.budgets import Budget
from broker.domain.placement.draining import drain
from broker.domain.placement.fleet import Fleet
from broker.domain.placement.moving import Draft, Step


def consolidate(
    fleet: Fleet, card: int, *, compute: int = 2, budget: Budget | None = None
) -> tuple[Step, ...]:
    """Empty a card on which slices of at most so much compute lie, all of them or none; return the steps taken."""
    pieces = list(fleet.on[card].values())
    if not pieces or sum(fleet.table.profiles[piece.profile].compute for piece in pieces) > compute:
        return ()
    if budget is not None and not budget.affords(pieces):
        return ()
    draft = Draft(fleet)
    if not drain(draft, card):
        return ()
    if budget is not None:
        budget.spend(pieces)
    # Every slice has its place free from the start, so the steps can be taken as they come.
    return tuple(draft.moved())
