"""A slice in the hand is put where others have to make way for it, and these find room elsewhere."""

from collections.abc import Callable, Sequence
from itertools import groupby, islice

from broker.domain.placement.fleet import Slice
from broker.domain.placement.moving import Draft
from broker.domain.placement.shapes import Eviction
from broker.domain.placement.tables import Table

TRIES = (2, 1)  # more ways to look at bring more moves, and hardly a lease more


def tries_for(table: Table, profile: int) -> tuple[int, ...]:
    """Return the ways to look at that are worth their moves.

    One slice makes way for more than a third of a card, two for more than half of one. The smaller ones fit in nearly
    everywhere, and one squeezed in on a full fleet takes the room of those that do not.
    """
    its, whole = table.profiles[profile], max(each.compute for each in table.profiles)
    part = (
        its.compute / whole if its.compute else its.memory / table.grid
    )  # a share has no compute of its own
    return TRIES if part > 1 / 2 else TRIES[:1] if part > 1 / 3 else ()


def squeeze(
    draft: Draft,
    wanted: Slice,
    tries: Sequence[int] = TRIES,
    may: Callable[[list[Slice]], bool] | None = None,
) -> bool:
    """Put a slice down by moving a few others, or change nothing and say that it cannot be done.

    `tries` says how many ways to look at that move one slice, two, and so on: the first with least compute to go,
    from the fullest card on. Of those that work with fewest slices the one is taken that loses least of what could
    still be sold. `may` says no to slices that must not go.
    """
    mark, on, ways = draft.mark, draft.fleet.on, draft.fleet.shapes.evictions(wanted.profile, len(tries))
    for count, alike in groupby(ways, key=lambda found: found[0].slices):
        best: tuple[float, int, Eviction] | None = None
        for way, card in islice(alike, tries[count - 1]):
            if (may is None or may([on[card][start] for start in way.starts])) and _displace(
                draft, wanted, card, way
            ):
                found = (draft.loss, card, way)
                best = found if best is None else min(best, found)
                draft.undo(mark)
        if best:
            return _displace(draft, wanted, best[1], best[2])
    return False


def _displace(draft: Draft, wanted: Slice, card: int, way: Eviction) -> bool:
    fleet, mark = draft.fleet, draft.mark
    pieces = [draft.lift(fleet.on[card][start].allocation) for start in way.starts]
    draft.put(wanted.at(fleet.ranks.best[wanted.profile][fleet.buckets.state[card]].start), card)
    pieces.sort(key=lambda piece: -fleet.table.profiles[piece.profile].memory)
    if all(draft.place(piece) for piece in pieces):
        return True
    draft.undo(mark)
    return False
