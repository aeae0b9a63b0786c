"""Slot search: which GPUs may serve a placement request, and which are chosen."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from broker.domain.geometry.profiles import Placement, Profile
from broker.domain.lifecycle.states import Isolation
from broker.domain.placement.gangs.gang_search import find_gang_slots
from broker.domain.placement.gangs.topology import LINK_LIMITS
from broker.domain.placement.shares.share_pool import SharePool
from broker.domain.placement.slots import Slot
from broker.models import Offering
from broker.services.inventory.gpu_catalogue import profile_named, profile_of
from broker.services.placement.gpu_index import DEDICATED, GpuIndex, RequestIndex
from broker.services.placement.placement_gpus import PlacementGpu, PoolKey
from ports.postgres.sql_statements import query_rows

TOPOLOGY_WORDS = {"": "", "nvlink": " with NVLink between the GPUs", "numa": " on one CPU socket"}


@dataclass(frozen=True, slots=True)
class PlacementRequest:
    """A placement request: what is placed together, and where it may not go."""

    offering: Offering
    quantity: int = 1
    same_node: bool = False
    topology: str = ""  # a key of `topology.ASKED`: only GPUs of one node that are linked that closely
    cluster: str = ""  # the only allowed one; empty: any
    not_in: frozenset[str] = frozenset()  # clusters, by name
    not_on: frozenset[str] = frozenset()  # nodes
    not_at: frozenset[str] = frozenset()  # GPUs that another placer is about to take

    @property
    def isolation(self) -> Isolation:
        return Isolation(self.offering.isolation)

    @property
    def pool(self) -> PoolKey:
        return pool_of(self.offering)


@dataclass(frozen=True)
class FoundSlots:
    """The slots chosen for a request, with their GPUs."""

    slots: tuple[Slot, ...]
    gpus: dict[str, PlacementGpu]


def pool_of(offering: Offering) -> PoolKey:
    return offering.model, offering.region


def own_placement_counts(isolation: Isolation) -> Mapping[str, int]:
    """Return the number of the tenant's own placements on each GPU.

    Empty where it does not matter. Must run inside the tenant's row-level security scope.
    """
    if isolation in DEDICATED:
        return {}
    return dict(query_rows("broker/placement/own_placements"))


def has_other_tenants(node: str) -> bool:
    """Return whether another tenant holds anything on a node.

    Must run inside the tenant's row-level security scope.
    """
    ((found,),) = query_rows("broker/placement/has_other_tenants", {"node": node})
    return bool(found)


def find_slots(
    request: PlacementRequest, stock: GpuIndex, *, instead: Collection[PlacementGpu] = ()
) -> FoundSlots | None:
    """Return slots for a whole request, or None when it does not fit now.

    A request is placed in one cluster: its pods find each other by names of that cluster. `instead` are GPUs in
    another state than their present one.
    """
    profile, mine = profile_of(request.offering), own_placement_counts(request.isolation)
    without = {gpu for node in request.not_on for gpu in stock.by_node.get(node, ())} | request.not_at
    for cluster in _clusters_to_try(request, stock):
        index = stock.index(request.pool, request.isolation, cluster)
        other_view = [gpu for gpu in instead if stock.may_serve(gpu, index)]
        with index.changed(without=without, along=stock.shared_only_with(index, mine), instead=other_view):
            slots = _find_in_index(stock, index, profile, request)
        if slots is not None:
            return FoundSlots(slots, {each.gpu: stock.gpus[each.gpu] for each in slots})
    return None


def _clusters_to_try(request: PlacementRequest, stock: GpuIndex) -> Collection[str]:
    """Return the clusters to try in order; an empty name means all at once."""
    if request.cluster:
        return [request.cluster] if request.cluster not in request.not_in else []
    if request.quantity == 1 and not request.not_in:
        return [""]
    return [name for name in stock.clusters(request.pool) if name not in request.not_in]


def _find_in_index(
    stock: GpuIndex, index: RequestIndex, profile: Profile, request: PlacementRequest
) -> tuple[Slot, ...] | None:
    if request.quantity == 1:
        best = index.best.find_cheapest_slot(profile)
        return (best,) if best else None
    # Several shares are not sold to one lease.
    if isinstance(index.best, SharePool) or index.best.how_many_fit(profile) < request.quantity:
        return None
    return find_gang_slots(
        index.best,
        profile,
        count=request.quantity,
        same_node=request.same_node,
        topologies=stock.links,
        max_link=LINK_LIMITS.get(request.topology),
    )


def count_placeable(
    offering: Offering, stock: GpuIndex, *, mine: Mapping[str, int], cluster: str = "", without: Collection[str] = ()
) -> int:
    """Return exactly how many of an offering could be placed now, without some GPUs."""
    index = stock.index(pool_of(offering), Isolation(offering.isolation), cluster)
    with index.changed(without=without, along=stock.shared_only_with(index, mine)):
        return index.best.how_many_fit(profile_of(offering))


def with_occupancy(found: FoundSlots) -> FoundSlots:
    """Return the slots with the placements on their GPUs, marking the tenant's own."""
    held: dict[str, list[tuple[str, Placement, bool]]] = {gpu_id: [] for gpu_id in found.gpus}
    for gpu_id, profile, isolation, start, mine in query_rows("broker/placement/occupied_slices", {"gpus": list(held)}):
        placed = profile_named(found.gpus[gpu_id].model, profile, isolation).placed_at(start)
        held[gpu_id].append((profile, placed, mine))
    gpus = {gpu_id: replace(gpu, held=tuple(held[gpu_id])) for gpu_id, gpu in found.gpus.items()}
    return FoundSlots(found.slots, gpus)
