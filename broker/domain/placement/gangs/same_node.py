"""Choose the node of a gang and the GPUs on it."""

from collections.abc import Mapping

from broker.domain.geometry.profiles import Placement, Profile
from broker.domain.placement.costs.engines import PlacementEngine
from broker.domain.placement.costs.state_tables import EMPTY
from broker.domain.placement.gangs.node_classes import GangCandidate, GangChoice, NodeClasses
from broker.domain.placement.gangs.topology import GpuLink, Topology
from broker.domain.placement.pool import PoolIndex
from broker.domain.placement.slots import Slot


def find_gang_on_one_node(
    pool: PoolIndex, profile: Profile, count: int, topologies: Mapping[str, Topology], max_link: GpuLink | None
) -> tuple[Slot, ...] | None:
    """Return a gang's slots on the cheapest node; None if no node has room.

    By first fit that is the first node with room. Nodes of one class cost the same: only the first of
    each is evaluated.
    """
    classes = pool.node_classes(profile)
    firsts = classes.first_nodes(topologies)
    if pool.engine is PlacementEngine.FIRST_FIT:
        firsts.sort()
    known, best = classes.cached_choices(count), None
    for node in firsts:
        if node not in known:
            known[node] = _gang_on_node(
                node, classes, profile, count, _relevant_topology(pool, profile, topologies, node)
            )
        found = known[node]
        # A node without a known topology cannot satisfy a link limit.
        if found is None or (max_link is not None and (found.longest_link > max_link or node not in topologies)):
            continue
        if pool.engine is PlacementEngine.FIRST_FIT:
            return found.slots
        best = found if best is None else min(best, found)
    return best.slots if best else None


def _relevant_topology(
    pool: PoolIndex, profile: Profile, topologies: Mapping[str, Topology], node: str
) -> Topology | None:
    """Return a node's topology where it matters: slices have no links."""
    return topologies.get(node) if profile.memory == pool.model.grid else None


def _gang_on_node(
    node: str, classes: NodeClasses, profile: Profile, count: int, topology: Topology | None
) -> GangChoice | None:
    members = classes.members(node)
    if sum(each.kind.max_instances[each.profile_number][each.state] for each in members) < count:
        return None
    if topology:
        return _nearest_gang(node, members, profile, count, topology)
    return _cheapest_gang(node, members, profile, count)


def _cheapest_gang(node: str, members: list[GangCandidate], profile: Profile, count: int) -> GangChoice | None:
    """Take the cheapest slot of the node repeatedly."""
    states = [each.state for each in members]
    opened, loss = 0, 0.0
    slots: list[Slot] = []
    while len(slots) < count:
        offers = [
            (cost.comparable_across_layouts, each.unpartitioned, cost, each.gpu, n)
            for n, (each, state) in enumerate(zip(members, states, strict=True))
            if (cost := each.kind.lowest_cost[each.profile_number].get(state))
        ]
        if not offers:  # its placements overlap, and one choice blocked two others
            return None
        _, _, cost, gpu, n = min(offers)
        move = members[n].kind.ranks.best_option[members[n].profile_number][states[n]]
        states[n] = move.next_state
        opened, loss = opened + cost.uses_empty_gpu, loss + cost.value_loss
        slots.append(Slot(gpu, Placement(move.start, profile.memory)))
    return GangChoice(opened, loss, _count_empty(members), GpuLink.SWITCH, node, tuple(slots))


def _nearest_gang(
    node: str, members: list[GangCandidate], profile: Profile, count: int, topology: Topology
) -> GangChoice | None:
    """Take the free GPUs of the node that are nearest to each other."""
    costs = {each.gpu: cost for each in members if (cost := each.kind.lowest_cost[each.profile_number].get(each.state))}
    together = topology.closest_free_gpus((gpu for gpu in costs if gpu in topology.gpus), count)
    if together is None:
        return None
    link, gpus = together
    loss = sum(costs[gpu].value_loss for gpu in gpus)
    slots = tuple(Slot(gpu, Placement(0, profile.memory)) for gpu in gpus)
    return GangChoice(count, loss, _count_empty(members), link, node, slots)


def _count_empty(members: list[GangCandidate]) -> int:
    return sum(each.state == EMPTY for each in members)
