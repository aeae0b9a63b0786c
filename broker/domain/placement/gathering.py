"""Room for a few slices that belong together: one after the other is put down, and others make way for them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from broker.domain.placement.budgets import Budget
from broker.domain.placement.fleet import Fleet, Slice
from broker.domain.placement.moving import Draft, Step
from broker.domain.placement.ordering import ordered
from broker.domain.placement.squeezing import TRIES, squeeze
from broker.domain.placement.tables import EMPTY, NOWHERE, Table
from broker.domain.profiles import Placement

NODES = 16  # are tried, in the order of what would have to go


@dataclass(frozen=True, slots=True)
class Gathering:
    """Where each of them goes, card and first unit, once these steps have been taken in this order."""

    seats: tuple[tuple[int, int], ...]
    steps: tuple[Step, ...]


def gather(
    fleet: Fleet,
    gang: Sequence[Slice],
    *,
    same_node: bool,
    tries: Sequence[int] = TRIES,
    gain: int | None = None,
    budget: Budget | None = None,
) -> Gathering | None:
    """Place slices, on one node or wherever they fit, by moving others, or change nothing and return None.

    `tries` says how hard to look where the node does not matter, as `squeeze` knows it. Moves that together cost more
    than the gain, or than the budget allows, are not made.
    """
    ways = _on_nodes(fleet, gang) if same_node else [None]
    for cards in ways:
        draft = Draft(fleet)
        if _anywhere(draft, gang, tries) if cards is None else _among(draft, gang, cards):
            steps = ordered(fleet.table, draft.moved(), min(fleet.buckets.cards[EMPTY], default=None))
            if steps is not None and _pays(fleet, steps, gain, budget):
                if steps:
                    steps[-1] = replace(steps[-1], gain=gain or 0)
                seats = tuple((fleet.card[each.allocation], fleet.start[each.allocation]) for each in gang)
                return Gathering(seats, tuple(steps))
        draft.undo()
    return None


def _pays(fleet: Fleet, steps: Sequence[Step], gain: int | None, budget: Budget | None) -> bool:
    """Tell whether these steps may be taken, and spend them."""
    # One that goes by way of a spare card is there once in the end, and is stopped twice.
    pieces = [fleet.on[fleet.card[step.allocation]][fleet.start[step.allocation]] for step in steps]
    if gain is not None and sum(step.cost for step in steps) > gain:
        return False
    if budget is None:
        return True
    if not budget.affords(pieces):
        return False
    budget.spend(pieces)
    return True


def _anywhere(draft: Draft, gang: Sequence[Slice], tries: Sequence[int]) -> bool:
    return all(draft.place(each, opening=True) or squeeze(draft, each, tries) for each in gang)


def _among(draft: Draft, gang: Sequence[Slice], cards: Sequence[int]) -> bool:
    """Place them on some cards; those who have to go find room anywhere, on an empty card only where nowhere else."""
    gone = _put_among(draft, gang, cards) or []  # they do fit: the nodes were chosen by trying
    gone.sort(key=lambda piece: -draft.fleet.table.profiles[piece.profile].memory)
    return all(draft.place(piece) or draft.place(piece, opening=True) for piece in gone)


def _put_among(draft: Draft, gang: Sequence[Slice], cards: Sequence[int]) -> list[Slice] | None:
    """Put them on some cards where least has to go, and return what was lifted for it; None where they do not fit."""
    gone: list[Slice] = []
    for each in gang:
        way = min((way for card in cards for way in _ways(draft.fleet, each, card)), default=None)
        if way is None:
            return None
        _, _, _, card, start, starts = way
        gone += [draft.lift(draft.fleet.on[card][at].allocation) for at in starts]
        draft.put(each.at(start), card)
    return gone


Way = tuple[int, int, bool, int, int, tuple[int, ...]]


def _ways(fleet: Fleet, wanted: Slice, card: int) -> Iterable[Way]:
    """Name the places of a card for a slice: how many have to go, at what cost, whether it opens the card, where."""
    table, on = fleet.table, fleet.on[card]
    if fleet.buckets.state[card] == NOWHERE:
        return
    for place in table.profiles[wanted.profile].placements:
        gone = [piece for piece in on.values() if _in_the_way(table, piece, wanted, place)]
        if all(
            piece.cost is not None and table.profiles[piece.profile].memory < table.grid for piece in gone
        ):
            cost = sum(piece.cost or 0 for piece in gone)
            yield len(gone), cost, not on, card, place.start, tuple(piece.start for piece in gone)


def _in_the_way(table: Table, piece: Slice, wanted: Slice, place: Placement) -> bool:
    its, other = table.profiles[wanted.profile], table.profiles[piece.profile]
    overlap = piece.start < place.end and place.start < piece.start + other.memory
    return overlap or (its.media and other.media) or its.isolation is not other.isolation


def _on_nodes(fleet: Fleet, gang: Sequence[Slice]) -> list[list[int]]:
    """Return the cards of the nodes on which they could be put, those first where fewest others have to go."""
    of_node: dict[int, list[int]] = {}
    for card, node in enumerate(fleet.buckets.node):
        of_node.setdefault(node, []).append(card)
    found = []
    for node, cards in of_node.items():
        draft = Draft(fleet)
        gone = _put_among(draft, gang, cards)
        draft.undo()
        if gone is not None:
            found.append((len(gone), sum(piece.cost or 0 for piece in gone), node))
    return [of_node[node] for _, _, node in islice(sorted(found), NODES)]
