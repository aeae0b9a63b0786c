"""The cards of one node for a gang: which node, and which of its cards."""

from collections.abc import Mapping

from broker.domain.placement.engines import Engine
from broker.domain.placement.makes import Gang, Makes, Member
from broker.domain.placement.pool import PoolIndex
from broker.domain.placement.seats import Seat
from broker.domain.placement.tables import EMPTY
from broker.domain.placement.topology import Link, Topology
from broker.domain.profiles import Placement, Profile


def on_one_node(
    pool: PoolIndex,
    profile: Profile,
    count: int,
    topologies: Mapping[str, Topology],
    within: Link | None,
) -> tuple[Seat, ...] | None:
    """Return the seats of a gang on the node that costs least by it, or None when no node has room for it.

    By first fit, that is the first node with room. Nodes of one make cost the same: only the first of each is weighed.
    """
    makes = pool.makes(profile)
    firsts = makes.firsts(topologies)
    if pool.engine is Engine.FIRST_FIT:
        firsts.sort()
    known, best = makes.known(count), None
    for node in firsts:
        if node not in known:
            known[node] = _on(node, makes, profile, count, _topology(pool, profile, topologies, node))
        found = known[node]
        # Of a node that tells nothing of its links nobody knows how near its cards are.
        if found is None or (within is not None and (found.link > within or node not in topologies)):
            continue
        if pool.engine is Engine.FIRST_FIT:
            return found.seats
        best = found if best is None else min(best, found)
    return best.seats if best else None


def _topology(
    pool: PoolIndex, profile: Profile, topologies: Mapping[str, Topology], node: str
) -> Topology | None:
    """Return how a node's cards reach each other where that matters: slices have no links."""
    return topologies.get(node) if profile.memory == pool.model.grid else None


def _on(node: str, makes: Makes, profile: Profile, count: int, topology: Topology | None) -> Gang | None:
    members = makes.members(node)
    if sum(each.kind.most[each.number][each.state] for each in members) < count:
        return None
    if topology:
        return _nearest(node, members, profile, count, topology)
    return _cheapest(node, members, profile, count)


def _cheapest(node: str, members: list[Member], profile: Profile, count: int) -> Gang | None:
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
    return Gang(opened, loss, _empty(members), Link.SWITCH, node, tuple(seats))


def _nearest(
    node: str, members: list[Member], profile: Profile, count: int, topology: Topology
) -> Gang | None:
    """Take the free cards of the node that are nearest to each other."""
    costs = {each.gpu: cost for each in members if (cost := each.kind.cost[each.number].get(each.state))}
    together = topology.together((gpu for gpu in costs if gpu in topology.cards), count)
    if together is None:
        return None
    link, gpus = together
    loss = sum(costs[gpu].loss for gpu in gpus)
    seats = tuple(Seat(gpu, Placement(0, profile.memory)) for gpu in gpus)
    return Gang(count, loss, _empty(members), link, node, seats)


def _empty(members: list[Member]) -> int:
    return sum(each.state == EMPTY for each in members)
