"""The slow and obvious way to choose a node for a gang: look at every node of the pool, one after the other."""

from collections import defaultdict
from collections.abc import Mapping

from broker.domain.placement.engines import Engine
from broker.domain.placement.makes import Member
from broker.domain.placement.pool import PoolIndex
from broker.domain.placement.seats import Seat
from broker.domain.placement.tables import EMPTY
from broker.domain.placement.topology import Link, Topology
from broker.domain.profiles import Placement, Profile

Found = tuple[int, float, int, Link, str, tuple[Seat, ...]]


def walked(
    pool: PoolIndex, profile: Profile, count: int, topologies: Mapping[str, Topology], within: Link | None
) -> tuple[Seat, ...] | None:
    """Return the seats of a gang on the node that costs least by it; by first fit, on the first with room."""
    found = []
    tried = set()
    for node, members in sorted(by_node(pool, profile).items()):
        if sum(each.kind.most[each.number][each.state] for each in members) < count:
            continue
        topology = topologies.get(node) if profile.memory == pool.model.grid else None
        one: Found | None = None
        if topology:
            one = nearest(node, members, profile, count, topology)
        elif within is None and (make := tuple(sorted(each.likeness for each in members))) not in tried:
            tried.add(make)
            one = cheapest(node, members, profile, count)
        if one and (within is None or one[3] <= within):
            found.append(one)
    if not found:
        return None
    return (found[0] if pool.engine is Engine.FIRST_FIT else min(found))[-1]


def by_node(pool: PoolIndex, profile: Profile) -> dict[str, list[Member]]:
    nodes: defaultdict[str, list[Member]] = defaultdict(list)
    for shelf, number in pool.selling(profile):
        for state in shelf.kind.ranks.order[number]:
            for gpu, node in shelf.cards_in(state):
                nodes[node].append(Member(gpu, shelf.kind, number, state, pool.is_uncut(shelf)))
    return nodes


def cheapest(node: str, members: list[Member], profile: Profile, count: int) -> Found | None:
    states, seats, opened, loss = [each.state for each in members], list[Seat](), 0, 0.0
    for _ in range(count):
        offers = [
            (cost.anywhere, each.uncut, cost, each.gpu, n)
            for n, (each, state) in enumerate(zip(members, states, strict=True))
            if (cost := each.kind.cost[each.number].get(state))
        ]
        if not offers:
            return None
        _, _, cost, gpu, n = min(offers)
        move = members[n].kind.ranks.best[members[n].number][states[n]]
        states[n], opened, loss = move.after, opened + cost.opens, loss + cost.loss
        seats.append(Seat(gpu, Placement(move.start, profile.memory)))
    return opened, loss, sum(each.state == EMPTY for each in members), Link.SWITCH, node, tuple(seats)


def nearest(
    node: str, members: list[Member], profile: Profile, count: int, topology: Topology
) -> Found | None:
    costs = {each.gpu: each.kind.cost[each.number][each.state] for each in members}
    together = topology.together((gpu for gpu in costs if gpu in topology.cards), count)
    if together is None:
        return None
    link, gpus = together
    empty = sum(each.state == EMPTY for each in members)
    seats = tuple(Seat(gpu, Placement(0, profile.memory)) for gpu in gpus)
    return count, sum(costs[gpu].loss for gpu in gpus), empty, link, node, seats
