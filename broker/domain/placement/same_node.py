"""The cards of one node for a gang: which node, and which of its cards."""

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from broker.domain.placement.engines import Engine
from broker.domain.placement.kinds import Kind
from broker.domain.placement.pool import PoolIndex, Seat
from broker.domain.placement.tables import EMPTY
from broker.domain.placement.topology import Link, Topology
from broker.domain.profiles import Placement, Profile


class _Member(NamedTuple):
    """A card of a node that may take part in a gang."""

    gpu: str
    kind: Kind
    number: int  # of the profile on cards of this kind
    state: int
    uncut: bool


class _Found(NamedTuple):
    """A gang on one node, and what decides between nodes."""

    opened: int
    loss: float
    empty: int
    link: Link
    node: str
    seats: tuple[Seat, ...]


def on_one_node(
    pool: PoolIndex,
    profile: Profile,
    count: int,
    topologies: Mapping[str, Topology],
    within: Link | None,
) -> tuple[Seat, ...] | None:
    """Return the seats of a gang on the node that costs least by it, or None when no node has room for it.

    By first fit, that is the first node with room.
    """
    best: _Found | None = None
    tried = set()
    for node, members in sorted(_by_node(pool, profile).items()):
        if sum(each.kind.most[each.number][each.state] for each in members) < count:
            continue
        found, topology = None, topologies.get(node)
        if topology and profile.memory == pool.model.grid:
            found = _nearest(node, members, profile, count, topology)
        # A node of the same make as an earlier one would cost the same.
        elif within is None and (make := tuple(sorted((id(m.kind), m.state) for m in members))) not in tried:
            tried.add(make)
            found = _cheapest(node, members, profile, count)
        if found and (within is None or found.link <= within):
            if pool.engine is Engine.FIRST_FIT:
                return found.seats
            best = found if best is None else min(best, found)
    return best.seats if best else None


def _by_node(pool: PoolIndex, profile: Profile) -> dict[str, list[_Member]]:
    """Return by node the cards on which the profile fits."""
    nodes: defaultdict[str, list[_Member]] = defaultdict(list)
    for shelf, number in pool.selling(profile):
        kind, uncut = shelf.kind, pool.is_uncut(shelf)
        for state in kind.ranks.order[number]:
            for gpu, node in shelf.cards_in(state):
                nodes[node].append(_Member(gpu, kind, number, state, uncut))
    return nodes


def _cheapest(node: str, members: list[_Member], profile: Profile, count: int) -> _Found | None:
    """Take the cheapest seat of the node again and again."""
    states = [each.state for each in members]
    opened, loss = 0, 0.0
    seats: list[Seat] = []
    while len(seats) < count:
        offers = [
            (cost.anywhere, each.uncut, cost, each.gpu, n)
            for n, (each, state) in enumerate(zip(members, states, strict=True))
            if (cost := each.kind.cost[each.number].get(state))
        ]
        if not offers:  # its placements cross, and an unlucky one took the room of two
            return None
        _, _, cost, gpu, n = min(offers)
        move = members[n].kind.ranks.best[members[n].number][states[n]]
        states[n] = move.after
        opened, loss = opened + cost.opens, loss + cost.loss
        seats.append(Seat(gpu, Placement(move.start, profile.memory)))
    return _Found(opened, loss, _empty(members), Link.SWITCH, node, tuple(seats))


def _nearest(
    node: str, members: list[_Member], profile: Profile, count: int, topology: Topology
) -> _Found | None:
    """Take the free cards of the node that are nearest to each other."""
    costs = {each.gpu: cost for each in members if (cost := each.kind.cost[each.number].get(each.state))}
    together = topology.together((gpu for gpu in costs if gpu in topology.cards), count)
    if together is None:
        return None
    link, gpus = together
    loss = sum(costs[gpu].loss for gpu in gpus)
    seats = tuple(Seat(gpu, Placement(0, profile.memory)) for gpu in gpus)
    return _Found(count, loss, _empty(members), link, node, seats)


def _empty(members: list[_Member]) -> int:
    return sum(each.state == EMPTY for each in members)
