"""Slices that spoil room change places with such as do not: more can be sold on the same cards afterwards.

A 1g in the last slot of an eight-unit card leaves a unit that nothing else can use; a 1g of double memory in its stead
leaves none.
"""

from collections import deque
from collections.abc import Sequence

from broker.domain.placement.fleet import Fleet, Slice
from broker.domain.placement.moving import Draft
from broker.domain.placement.tables import EMPTY


def mend(draft: Draft, sources: Sequence[int]) -> None:
    """Mend cards on which room is spoilt, by slices from sources, the first of which are the ones to be emptied."""
    fleet = draft.fleet
    # By profile, what may come from the sources; who was moved meanwhile is passed over.
    coming: list[deque[tuple[int, Slice]]] = [deque() for _ in fleet.table.profiles]
    for card in sources:
        for _, piece in sorted(fleet.on[card].items()):
            coming[piece.profile].append((card, piece))
    last = set(sources)
    for card in [*(card for card in range(len(fleet.on)) if card not in last), *reversed(sources)]:
        if _spoilt(fleet, card):
            for piece in sorted(
                fleet.on[card].values(), key=lambda piece: fleet.table.profiles[piece.profile].memory
            ):
                if piece.cost is not None and _exchange(draft, card, piece, coming):
                    break


def _exchange(draft: Draft, card: int, piece: Slice, coming: Sequence[deque[tuple[int, Slice]]]) -> bool:
    """Let a slice go and another one come in its stead if more can be sold then, or change nothing."""
    fleet, mark, before = draft.fleet, draft.mark, draft.loss
    draft.lift(piece.allocation)
    lifted, state = draft.mark, fleet.buckets.state[card]
    for profile in reversed(range(len(coming))):
        if fleet.worth[profile] <= fleet.worth[piece.profile] or not fleet.ranks.fits(profile, state):
            continue
        its = coming[profile]
        while its and (fleet.on[its[0][0]].get(its[0][1].start) != its[0][1] or its[0][0] == card):
            its.popleft()
        if its:
            draft.lift(its[0][1].allocation)
            draft.put(its[0][1].at(fleet.ranks.best[profile][state].start), card)
            if draft.place(piece) and draft.loss < before:
                its.popleft()
                return True
            draft.undo(lifted)
    draft.undo(mark)
    return False


def _spoilt(fleet: Fleet, card: int) -> bool:
    """Tell whether what lies on a card, and the best that could lie beside it, are worth less than a whole card."""
    worth = sum(fleet.worth[piece.profile] for piece in fleet.on[card].values())
    return bool(fleet.on[card]) and worth + fleet.room[fleet.buckets.state[card]] < fleet.room[EMPTY]
