"""Whole cards for a gang on one node: the node is chosen where fewest slices, and the cheapest, have to go."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice

from broker.domain.placement.budgets import Budget
from broker.domain.placement.draining import largest_first
from broker.domain.placement.fleet import Fleet, Slice
from broker.domain.placement.moving import Draft, Step
from broker.domain.placement.tables import EMPTY, NOWHERE

Load = tuple[int, int, int]  # slices on a card, what it costs to move them all, the card
Near = Callable[[tuple[int, ...]], bool]  # whether cards of one node are near enough to each other


@dataclass(frozen=True, slots=True)
class Evacuation:
    """The cards of the gang, one for each member, once these steps have been taken, in this order."""

    cards: tuple[int, ...]
    steps: tuple[Step, ...]


def evacuate(
    fleet: Fleet,
    gang: Sequence[Slice],
    *,
    nodes: int = 16,
    whole_cards: bool = True,
    near: Near | None = None,
    opening: bool = False,
    gain: int | None = None,
    budget: Budget | None = None,
) -> Evacuation | None:
    """Place a gang of whole cards on one node, by moving slices to others, or change nothing and return None.

    A slice goes where others lie already, with `opening` also to an empty card; one that is a whole card itself goes
    to an empty card of another node, if such may be moved at all. So many nodes are tried, in the order of what has
    to go. `near` says which cards of a node may be taken together; without it all.
    """
    for cards in _cheapest(fleet, len(gang), nodes, whole_cards, near):
        pieces = largest_first(fleet, cards)
        if budget is not None and not budget.affords(pieces):
            continue
        if gain is not None and sum(piece.cost or 0 for piece in pieces) > gain:
            continue
        steps = _out_of_its_way(fleet, gang, cards, pieces, opening, gain or 0)
        if steps is not None:
            if budget is not None:
                budget.spend(pieces)
            return Evacuation(cards, tuple(steps))
    return None


def _cheapest(
    fleet: Fleet, count: int, nodes: int, whole_cards: bool, near: Near | None
) -> list[tuple[int, ...]]:
    """Name by node, the cheapest first, the cards that would be taken there."""
    on_node = _loads(fleet, whole_cards)
    found = []
    for node, loads in on_node.items():
        if len(loads) >= count:
            taken = sorted(loads)[:count]
            found.append((*_price(taken), node, taken))
    found.sort()
    if near is None:
        return [_cards(taken) for _, _, _, taken in found[:nodes]]
    # What the cheapest cost that need not be near is a lower bound, and says whom to ask first.
    linked = (_linked(on_node[node], count, near) for _, _, node, _ in found)
    tried = islice((taken for taken in linked if taken), nodes)
    return [_cards(taken) for taken in sorted(tried, key=lambda taken: (*_price(taken), taken))]


def _loads(fleet: Fleet, whole_cards: bool) -> dict[int, list[Load]]:
    """Return by node the cards that could be emptied, with what that takes."""
    on_node: defaultdict[int, list[Load]] = defaultdict(list)
    stays = [not whole_cards and its.memory == fleet.table.grid for its in fleet.table.profiles]
    for card, (node, state) in enumerate(zip(fleet.buckets.node, fleet.buckets.state, strict=True)):
        cost = 0
        for piece in fleet.on[card].values():
            if piece.cost is None or stays[piece.profile]:
                break
            cost += piece.cost
        else:
            if state != NOWHERE:
                on_node[node].append((len(fleet.on[card]), cost, card))
    return on_node


def _linked(loads: Sequence[Load], count: int, near: Near) -> tuple[Load, ...] | None:
    """Return the cheapest cards of a node that are near enough to each other."""
    ways = (way for way in combinations(sorted(loads), count) if near(_cards(way)))
    return min(ways, key=lambda way: (*_price(way), way), default=None)


def _price(loads: Sequence[Load]) -> tuple[int, int]:
    return sum(load[0] for load in loads), sum(load[1] for load in loads)


def _cards(loads: Sequence[Load]) -> tuple[int, ...]:
    return tuple(card for _, _, card in loads)


def _out_of_its_way(
    fleet: Fleet, gang: Sequence[Slice], cards: tuple[int, ...], pieces: list[Slice], opening: bool, gain: int
) -> list[Step] | None:
    table, draft = fleet.table, Draft(fleet)
    for piece in pieces:
        draft.lift(piece.allocation)
    for member, card in zip(gang, cards, strict=True):
        draft.put(member.at(table.moves[member.profile][EMPTY][0].start), card)
    if all(
        draft.place(piece, opening=table.profiles[piece.profile].memory == table.grid)
        or (opening and draft.place(piece, opening=True))
        for piece in pieces
    ):
        steps = draft.moved()
        if steps:
            steps[-1] = replace(steps[-1], gain=gain)
        return steps
    draft.undo()
    return None
