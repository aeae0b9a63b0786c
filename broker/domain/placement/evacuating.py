"""Whole cards for a gang on one node: the node is chosen where fewest slices, and the cheapest, have to go."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from broker.domain.placement.budgets import Budget
from broker.domain.placement.draining import largest_first
from broker.domain.placement.fleet import Fleet, Slice
from broker.domain.placement.moving import Draft, Step
from broker.domain.placement.tables import EMPTY, NOWHERE


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
    gain: int | None = None,
    budget: Budget | None = None,
) -> Evacuation | None:
    """Place a gang of whole cards on one node, by moving slices to others, or change nothing and return None.

    A slice goes where others lie already; one that is a whole card itself goes to an empty card of another node, if
    such may be moved at all. So many nodes are tried, in the order of what has to go.
    """
    for cards in _cheapest(fleet, len(gang), whole_cards)[:nodes]:
        pieces = largest_first(fleet, cards)
        if budget is not None and not budget.affords(pieces):
            continue
        if gain is not None and sum(piece.cost or 0 for piece in pieces) > gain:
            continue
        steps = _out_of_its_way(fleet, gang, cards, pieces, gain or 0)
        if steps is not None:
            if budget is not None:
                budget.spend(pieces)
            return Evacuation(cards, tuple(steps))
    return None


def _cheapest(fleet: Fleet, count: int, whole_cards: bool) -> list[tuple[int, ...]]:
    """Name by node, the cheapest first, the cards that would be taken there."""
    on_node: defaultdict[int, list[tuple[int, int, int]]] = defaultdict(list)
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
    found = []
    for node, loads in on_node.items():
        if len(loads) >= count:
            taken = sorted(loads)[:count]
            found.append((sum(load[0] for load in taken), sum(load[1] for load in taken), node, taken))
    return [tuple(card for _, _, card in taken) for _, _, _, taken in sorted(found)]


def _out_of_its_way(
    fleet: Fleet, gang: Sequence[Slice], cards: tuple[int, ...], pieces: list[Slice], gain: int
) -> list[Step] | None:
    table, draft = fleet.table, Draft(fleet)
    for piece in pieces:
        draft.lift(piece.allocation)
    for member, card in zip(gang, cards, strict=True):
        draft.put(member.at(table.moves[member.profile][EMPTY][0].start), card)
    if all(
        draft.place(piece, opening=table.profiles[piece.profile].memory == table.grid) for piece in pieces
    ):
        steps = draft.moved()
        if steps:
            steps[-1] = replace(steps[-1], gain=gain)
        return steps
    draft.undo()
    return None
