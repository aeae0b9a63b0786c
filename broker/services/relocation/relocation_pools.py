"""Input of the relocation planner: one cluster's GPUs of one model and their leases."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count

from broker.domain.defragmentation.evacuation import AreNear
from broker.domain.defragmentation.fleet import LiveSlice, SliceFleet
from broker.domain.geometry.host_resources import exceeded_fields
from broker.domain.geometry.published_profiles import PublishedProfiles, published_profiles
from broker.domain.lifecycle.states import Isolation, LeaseState
from broker.domain.placement.buckets.state_buckets import StateBuckets
from broker.domain.placement.costs import slice_prices
from broker.domain.placement.costs.bid_price_rule import bid_price_ranks
from broker.domain.placement.gangs.topology import GpuLink, GpuLinks, topology_of
from broker.models import Allocation, Cluster, Gpu, LayoutPolicy
from broker.provisioners.kubernetes.drivers.driver_registry import cluster_picks_gpus, dynamic_isolations
from broker.services.inventory.gpu_catalogue import gpu_model_spec
from broker.services.inventory.node_supplies import NodeSupply
from broker.services.inventory.offering_resources import lease_resources, share_of_slice
from ports.postgres.sql_statements import query_rows
from tenants.services.rls import staff_scope

MIN_REMAINING = timedelta(minutes=30)  # leases that end sooner make room by themselves
STOP_ESTIMATE_S, START_ESTIMATE_S, STARTS_CONSIDERED = 5, 30, 200


@dataclass(frozen=True)
class RelocationPool:
    """GPUs of one model in one cluster, as the planner reads them.

    GPUs are numbered in list order, slices are named by their allocation's id, and profiles have numbers.
    """

    cluster: Cluster
    model: str
    gpus: tuple[Gpu, ...]
    allocations: dict[str, Allocation]
    fleet: SliceFleet
    numbers: dict[tuple[str, str], int]  # by name and isolation

    @property
    def grid(self) -> int:
        return self.fleet.table.grid

    def name(self, gpu: int) -> str:
        gpu_id = self.gpus[gpu]
        return f"{gpu_id.node} / GPU {gpu_id.index}"

    def link_check(self, within: GpuLink) -> AreNear:
        """Return a function that tells whether GPUs are linked at least this closely."""
        on_node: dict[str, list[GpuLinks]] = {}
        for gpu in self.gpus:
            on_node.setdefault(gpu.node_id, []).append(GpuLinks(gpu.pk, gpu.fabric, gpu.numa))
        links = {node: topology_of(gpus) for node, gpus in on_node.items()}

        def are_near(gpus: tuple[int, ...]) -> bool:
            known = links[self.gpus[gpus[0]].node_id]
            return known is not None and known.largest_linked_count([self.gpus[n].pk for n in gpus], within) == len(
                gpus
            )

        return are_near


def load_relocation_pools(cluster: Cluster, *, now: datetime) -> list[RelocationPool]:
    """Load the pools of a cluster in which we choose where slices are created.

    Leases of other clusters cannot be relocated to a chosen place.
    """
    dynamic = Gpu.objects.without_cpu_blocks().filter(layout_policy=LayoutPolicy.DYNAMIC).sellable()
    dynamic = dynamic.filter(node__cluster=cluster)
    rows = [
        gpu
        for gpu in dynamic.select_related("node").order_by("node__name", "index")
        if _is_placed_by_us(gpu.driver or cluster.driver, cluster)
    ]
    if not rows:
        return []
    # GPUs with a reduced set of profiles are planned together with GPUs of the same set.
    alike: defaultdict[tuple[str, PublishedProfiles | None], list[Gpu]] = defaultdict(list)
    with staff_scope():
        held = _load_placements(rows)
        for gpu in rows:
            published = published_profiles(gpu.published) if gpu.published is not None else None
            alike[gpu.gpu_model_id, published].append(gpu)
        return [
            _build_pool(cluster, model, published, gpus, held, now)
            for (model, published), gpus in sorted(alike.items(), key=lambda each: each[0][0])
        ]


def _is_placed_by_us(driver: str, cluster: Cluster) -> bool:
    """Return whether we choose where slices are created on GPUs of a driver."""
    picks = cluster_picks_gpus(driver, cluster.driver_options)
    return not picks and Isolation.HARDWARE in dynamic_isolations(driver)


def _load_placements(gpus: Sequence[Gpu]) -> dict[str, list[Allocation]]:
    found: dict[str, list[Allocation]] = {gpu.pk: [] for gpu in gpus}
    rows = Allocation.objects.filter(gpu__in=list(found), released_at=None).select_related("lease__offering")
    for each in rows.order_by("gpu_id", "placement"):
        found[each.gpu_id].append(each)
    return found


def _build_pool(
    cluster: Cluster,
    model: str,
    published: PublishedProfiles | None,
    gpus: list[Gpu],
    held: dict[str, list[Allocation]],
    now: datetime,
) -> RelocationPool:
    spec = gpu_model_spec(model)
    profiles = (spec.whole, *spec.profiles_with(Isolation.HARDWARE))
    profiles = published.only(profiles) if published else profiles
    numbers = {(each.name, each.isolation.value): n for n, each in enumerate(profiles)}
    # A share, or a profile that its GPU no longer publishes, has no number: that GPU is left out.
    dedicated = [gpu for gpu in gpus if all((each.profile, each.isolation) in numbers for each in held[gpu.pk])]
    ranks = bid_price_ranks(profiles, spec.grid, slice_prices.default_prices(profiles, spec.grid))
    nodes = {node: n for n, node in enumerate(sorted({gpu.node_id for gpu in dedicated}))}
    fleet = SliceFleet(StateBuckets(ranks, [nodes[gpu.node_id] for gpu in dedicated]))
    cost_s = STOP_ESTIMATE_S + _median_start_s(model, cluster.region)
    supplies = _node_supplies(dedicated)
    for number, gpu in enumerate(dedicated):
        for each in held[gpu.pk]:
            profile, start = numbers[each.profile, each.isolation], each.placement.lower
            cost = cost_s if _is_relocatable(each, now) and _fits_on_other_nodes(each, gpu.node_id, supplies) else None
            fleet.place_on(number, LiveSlice(each.pk, profile, start, cost, each.tenant_id))
    everything = {each.pk: each for its in held.values() for each in its}
    return RelocationPool(cluster, model, tuple(dedicated), everything, fleet, numbers)


def _is_relocatable(held: Allocation, now: datetime) -> bool:
    """Return whether a lease may be relocated.

    It is relocatable, does not end soon, and has just this one placement.
    """
    lease = held.lease
    at_rest = lease.state == LeaseState.ACTIVE and not lease.conditions and held.leaving_since is None
    present = held.generation == lease.generation and lease.quantity == 1
    return (
        lease.relocatable and at_rest and present and lease.ends_at is not None and lease.ends_at > now + MIN_REMAINING
    )


def _node_supplies(gpus: Sequence[Gpu]) -> dict[str, NodeSupply]:
    """Return what the nodes of some GPUs have for leases, by node."""
    nodes = {gpu.node_id: gpu.node for gpu in gpus}
    counts = dict(
        Gpu.objects.without_cpu_blocks().filter(node__in=nodes).values_list("node").annotate(Count("pk")).order_by()
    )
    return {pk: NodeSupply(node.host_resources, counts[pk]) for pk, node in nodes.items()}


def _fits_on_other_nodes(held: Allocation, here: str, supplies: Mapping[str, NodeSupply]) -> bool:
    """Return whether all other nodes of the pool fit a lease's promise.

    The planner knows GPUs and no CPUs: a lease with more than its offering brings now stays where one has too little.
    """
    needed, offering = lease_resources(held.lease), held.lease.offering
    others = {supply for node, supply in supplies.items() if node != here}
    return not any(exceeded_fields(needed, share_of_slice(offering, supply)) for supply in others)


def _median_start_s(model: str, region: str) -> int:
    ((median,),) = query_rows("broker/relocation/median_start", [model, region, STARTS_CONSIDERED])
    return START_ESTIMATE_S if median is None else int(median)
