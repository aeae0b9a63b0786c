"""Gang search that checks every node one by one."""

from collections import defaultdict
from collections.abc import Mapping

from broker.domain.geometry.profiles import Placement, Profile
from broker.domain.placement.costs.engines import PlacementEngine
from broker.domain.placement.costs.state_tables import EMPTY
from broker.domain.placement.gangs.node_classes import GangCandidate
from broker.domain.placement.gangs.topology import GpuLink, Topology
from broker.domain.placement.pool import PoolIndex
from broker.domain.placement.slots import Slot

Found = tuple[int, float, int, GpuLink, str, tuple[Slot, ...]]


def naive_gang_slots(
    pool: PoolIndex, profile: Profile, count: int, topologies: Mapping[str, Topology], within: GpuLink | None
) -> tuple[Slot, ...] | None:
    """Return the cheapest slots for a gang, or the first."""
    found = []
    tried = set()
    for node, members in sorted(by_node(pool, profile).items()):
        if sum(each.kind.max_instances[each.profile_number][each.state] for each in members) < count:
            continue
        topology = topologies.get(node) if profile.memory == pool.model.grid else None
        one: Found | None = None
        if topology:
            one = nearest(node, members, profile, count, topology)
        elif within is None and (make := tuple(sorted(each.equivalence_key for each in members))) not in tried:
            tried.add(make)
            one = cheapest(node, members, profile, count)
        if one and (within is None or one[3] <= within):
            found.append(one)
    if not found:
        return None
    return (found[0] if pool.engine is PlacementEngine.FIRST_FIT else min(found))[-1]


def by_node(pool: PoolIndex, profile: Profile) -> dict[str, list[GangCandidate]]:
    nodes: defaultdict[str, list[GangCandidate]] = defaultdict(list)
    for shelf, number in pool.groups_offering(profile):
        for state in shelf.kind.ranks.states_by_rank[number]:
            for gpu, node in shelf.gpus_in(state):
                nodes[node].append(GangCandidate(gpu, shelf.kind, number, state, pool.is_unpartitioned(shelf)))
    return nodes


def cheapest(node: str, members: list[GangCandidate], profile: Profile, count: int) -> Found | None:
    states, seats, opened, loss = [each.state for each in members], list[Slot](), 0, 0.0
    for _ in range(count):
        offers = [
            (cost.comparable_across_layouts, each.unpartitioned, cost, each.gpu, n)
            for n, (each, state) in enumerate(zip(members, states, strict=True))
            if (cost := each.kind.lowest_cost[each.profile_number].get(state))
        ]
        if not offers:
            return None
        _, _, cost, gpu, n = min(offers)
        move = members[n].kind.ranks.best_option[members[n].profile_number][states[n]]
        states[n], opened, loss = move.next_state, opened + cost.uses_empty_gpu, loss + cost.value_loss
        seats.append(Slot(gpu, Placement(move.start, profile.memory)))
    return opened, loss, sum(each.state == EMPTY for each in members), GpuLink.SWITCH, node, tuple(seats)


def nearest(node: str, members: list[GangCandidate], profile: Profile, count: int, topology: Topology) -> Found | None:
    costs = {each.gpu: each.kind.lowest_cost[each.profile_number][each.state] for each in members}
    together = topology.closest_free_gpus((gpu for gpu in costs if gpu in topology.gpus), count)
    if together is None:
        return None
    link, gpus = together
    empty = sum(each.state == EMPTY for each in members)
    seats = tuple(Slot(gpu, Placement(0, profile.memory)) for gpu in gpus)
    return count, sum(costs[gpu].value_loss for gpu in gpus), empty, link, node, seats
