"""Search slots for the members of a gang."""

from collections.abc import Mapping

from broker.domain.geometry.gpu_models import GpuModelSpec
from broker.domain.geometry.profiles import Profile
from broker.domain.placement.gangs.same_node import find_gang_on_one_node
from broker.domain.placement.gangs.topology import GpuLink, Topology
from broker.domain.placement.pool import PoolIndex
from broker.domain.placement.slots import Slot

NO_TOPOLOGIES: Mapping[str, Topology] = {}  # topologies by node: none known


def find_gang_slots(
    pool: PoolIndex,
    profile: Profile,
    *,
    count: int,
    same_node: bool,
    topologies: Mapping[str, Topology] | None = None,
    max_link: GpuLink | None = None,
) -> tuple[Slot, ...] | None:
    """Return slots for all members of a gang, or None; nothing is held.

    On one node, the node is taken where fewest GPUs are opened, least is lost and fewest empty GPUs
    remain; where its links are known, the GPUs that are nearest to each other. `max_link` is the
    longest link allowed between two of them: then only nodes whose links are known are considered. A
    caller that passes the same mapping of topologies again must have reported changed nodes by
    `mark_links_changed`.
    """
    if count < 1:
        raise ValueError(f"a gang has at least one member, not {count}")
    if max_link is not None and not same_node:
        raise ValueError("links exist within a node only: request one node, or no topology")
    if not same_node:
        return _gang_on_any_nodes(pool, profile, count)
    if max_link is not None:
        _check_whole_gpu(profile, pool.model)
    return find_gang_on_one_node(pool, profile, count, NO_TOPOLOGIES if topologies is None else topologies, max_link)


def _gang_on_any_nodes(pool: PoolIndex, profile: Profile, count: int) -> tuple[Slot, ...] | None:
    """Find slots on any nodes by holding them in the pool for a while."""
    if pool.how_many_fit(profile) < count:
        return None
    slots: list[Slot] = []
    with pool.hold_temporarily() as hold:
        # If its placements overlap, one choice may block two others, and the last member finds no slot.
        while len(slots) < count and (slot := pool.find_cheapest_slot(profile)):
            hold(slot, profile)
            slots.append(slot)
    return tuple(slots) if len(slots) == count else None


def _check_whole_gpu(profile: Profile, model: GpuModelSpec) -> None:
    if profile.memory != model.grid:
        raise ValueError(f"only whole GPUs have links, a slice of {profile.name} has none")
