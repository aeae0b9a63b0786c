"""Cards made empty by moving all that lies on them elsewhere, or left as they are."""

from collections.abc import Iterable, Sequence

from broker.domain.placement.fleet import Fleet, Slice
from broker.domain.placement.moving import Draft
from broker.domain.placement.squeezing import squeeze


def largest_first(fleet: Fleet, cards: Iterable[int]) -> list[Slice]:
    """Return all slices of these cards, in the order in which they find room least easily."""
    pieces = [piece for card in cards for piece in fleet.on[card].values()]
    return sorted(pieces, key=lambda piece: (-fleet.table.profiles[piece.profile].memory, piece.allocation))


def emptied_cheapest(fleet: Fleet) -> list[int]:
    """Name the cards that could be emptied to some use, the cheapest first."""
    whole = [profile.memory == fleet.table.grid for profile in fleet.table.profiles]
    found = []
    for card, on in enumerate(fleet.on):
        cost = 0
        for piece in on.values():
            if piece.cost is None or whole[piece.profile]:
                break
            cost += piece.cost
        else:
            if on:
                found.append((cost, card))
    return [card for _, card in sorted(found)]


def drain(draft: Draft, card: int, tries: Sequence[int] = ()) -> bool:
    """Move everything off a card to others on which something lies already, or change nothing and say so.

    Tries, as `squeeze` knows them, let others make way for a slice that fits nowhere.
    """
    fleet, mark = draft.fleet, draft.mark
    pieces = largest_first(fleet, [card])
    if any(piece.cost is None for piece in pieces):
        return False
    for piece in pieces:
        draft.lift(piece.allocation)
    # The card is empty now, and no empty card is opened: nothing comes back to it.
    if all(draft.place(piece) or (tries and squeeze(draft, piece, tries)) for piece in pieces):
        return True
    draft.undo(mark)
    return False
