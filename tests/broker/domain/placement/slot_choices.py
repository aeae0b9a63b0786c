"""Slot choices for tests that have GPUs and no pool."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from broker.domain.geometry.gpu_models import GpuModelSpec
from broker.domain.geometry.profiles import Profile
from broker.domain.placement.costs.bid_price_rule import PlacementCost
from broker.domain.placement.gangs.gang_search import find_gang_slots
from broker.domain.placement.gangs.topology import GpuLink, Topology
from broker.domain.placement.pool import GpuView, PoolIndex, _offer_cost
from broker.domain.placement.slots import Slot


class SlotChoice(NamedTuple):
    """A slot with its cost, so that choices can be compared."""

    score: PlacementCost
    seat: Slot


def weigh(pool: PoolIndex, profile: Profile) -> SlotChoice | None:
    """Return the pool's choice with its cost."""
    found = pool._cheapest(profile)
    return SlotChoice(_offer_cost(*found[:2]), found[2]) if found else None


def choose_slot(gpus: Iterable[GpuView], profile: Profile, model: GpuModelSpec) -> Slot | None:
    """Return the free slot that costs least, or None when nothing fits."""
    return PoolIndex(model, gpus).find_cheapest_slot(profile)


def count_that_fit(gpus: Iterable[GpuView], profile: Profile, model: GpuModelSpec) -> int:
    """Return exactly how many of a profile could be placed now, in sequence."""
    return PoolIndex(model, gpus).how_many_fit(profile)


def choose_gang_slots(
    gpus: Iterable[GpuView],
    profile: Profile,
    model: GpuModelSpec,
    *,
    count: int,
    same_node: bool,
    topologies: Mapping[str, Topology] | None = None,
    within: GpuLink | None = None,
) -> tuple[Slot, ...] | None:
    """Return slots for a gang; see `find_gang_slots`."""
    pool = PoolIndex(model, gpus)
    return find_gang_slots(pool, profile, count=count, same_node=same_node, topologies=topologies, max_link=within)
