"""Capacity available now: counts per offering, a placement preview, and the theoretical maximum.

The caller passes in the GPUs reserved for leases that have waited too long
(`starvation_guard.reserved_gpus`).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from broker.domain.geometry.gpu_state import EMPTY_GPU
from broker.domain.geometry.profiles import Profile, ProfileKind
from broker.domain.geometry.slice_packing import max_instances_that_fit
from broker.domain.lifecycle.states import Isolation
from broker.domain.placement.gangs.topology import LINK_LIMITS
from broker.models import Offering
from broker.services.inventory.gpu_catalogue import profile_of
from broker.services.placement.gpu_index import DEDICATED
from broker.services.placement.placement_gpus import PlacementGpu, PoolKey
from broker.services.placement.shared_index import current_index
from broker.services.placement.slot_search import (
    FoundSlots,
    PlacementRequest,
    count_placeable,
    find_slots,
    own_placement_counts,
    pool_of,
    with_occupancy,
)

# By pool the GPUs reserved for others, and None where nothing new is placed at all.
ReservedByPool = Mapping[PoolKey, frozenset[str] | None]
NOTHING_RESERVED: ReservedByPool = {}
__all__ = [
    "FoundSlots",
    "PlacementGpu",
    "count_available",
    "max_when_empty",
    "pool_of",
    "preview_placement",
    "slices_when_empty",
]


def preview_placement(
    offering: Offering,
    *,
    quantity: int = 1,
    same_node: bool = False,
    topology: str = "",
    cluster: str = "",
    reserved: ReservedByPool = NOTHING_RESERVED,
) -> FoundSlots | None:
    """Return where a request would be placed now, without reserving anything.

    Must run inside the tenant's row-level security scope. `cluster` restricts it to one cluster, the one
    its volume is in. `reserved` are GPUs that it may not use.
    """
    without = reserved.get(pool_of(offering), frozenset())
    if without is None:
        return None
    with current_index() as stock:
        found = find_slots(PlacementRequest(offering, quantity, same_node, topology, cluster, not_at=without), stock)
    return with_occupancy(found) if found else None


def max_when_empty(
    offering: Offering,
    *,
    quantity: int,
    same_node: bool,
    topology: str = "",
    in_service: bool = False,
    cluster: str = "",
) -> int:
    """Return how many the best cluster, or its best node, could hold if empty.

    `in_service` counts only GPUs that may be placed on now, not those that may come back, and as they are
    partitioned now: a cluster that repartitions its nodes automatically may otherwise come to hold whatever
    its GPUs can be partitioned into. `cluster` restricts the count to one cluster, by name. `topology`
    counts the GPUs of one node that are linked that closely.
    """
    profile, together = profile_of(offering), Counter[str]()
    near = defaultdict[str, list[str]](list)
    with current_index() as stock:
        for gpu in stock.by_pool[pool_of(offering)].values():
            if cluster in ("", gpu.cluster) and (gpu.sellable or not in_service):
                there = gpu.node if same_node else gpu.cluster
                together[there] += (fits := slices_when_empty(gpu, profile, as_cut_now=in_service))
                near[gpu.node] += [gpu.gpu] * (fits > 0)
        if topology:
            linked = (node for node in near if node in stock.links)
            return max(
                (stock.links[node].largest_linked_count(near[node], LINK_LIMITS[topology]) for node in linked),
                default=0,
            )
    return max(together.values(), default=0)


def slices_when_empty(gpu: PlacementGpu, profile: Profile, *, as_cut_now: bool) -> int:
    """Return how many slices of a profile fit on the GPU when it is empty."""
    if not gpu.sold_as(profile.isolation):
        return 0
    # A GPU is never repartitioned into shares.
    stays = as_cut_now or not gpu.auto_repartition or profile.kind is ProfileKind.SHARE
    return max_instances_that_fit(profile, EMPTY_GPU, gpu.cut if stays else gpu.publishes)


def count_available(
    offerings: Iterable[Offering], *, cluster: str = "", reserved: ReservedByPool = NOTHING_RESERVED
) -> dict[str, int]:
    """Return exactly how many of each offering could be placed now, counted separately.

    `cluster` restricts the count to one cluster, by name. `reserved` are GPUs that are not counted.
    """
    listed = list(offerings)
    shared = [o for o in listed if Isolation(o.isolation) not in DEDICATED]
    with current_index() as stock:
        mine = own_placement_counts(Isolation(shared[0].isolation)) if shared else {}
        found = {}
        for each in listed:
            without = reserved.get(pool_of(each), frozenset())
            found[each.pk] = (
                0 if without is None else count_placeable(each, stock, mine=mine, cluster=cluster, without=without)
            )
        return found
