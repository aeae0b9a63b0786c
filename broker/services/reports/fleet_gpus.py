"""Fleet report: every GPU with the leases on it. Must run as staff."""

import json
from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache, reduce
from itertools import groupby
from operator import itemgetter, or_
from typing import NamedTuple

from broker.domain.geometry.cpu_blocks import CPU_MODEL_NAME, units_in_block
from broker.domain.geometry.gpu_state import EMPTY_GPU, GpuState
from broker.domain.geometry.profiles import Profile
from broker.domain.geometry.slice_packing import SellableProfiles, sellable_profiles
from broker.domain.lifecycle.states import Isolation, LeaseState, PriceClass
from broker.models import GpuHealth, NodeState, Offering
from broker.services.inventory.gpu_catalogue import gpu_model_spec, profile_named
from broker.services.placement.placement_gpus import PoolKey, parse_layout, parse_published
from broker.services.reports.gpu_usage import FleetGpu, LeasedSlice
from ports.postgres.sql_statements import query_rows

# A lookup is cheaper than constructing the enum, for thousands of rows.
STATES = {each.value: each for each in LeaseState}
CLASSES = {each.value: each for each in PriceClass}


class GpuRow(NamedTuple):
    """A row of `fleet_gpus.sql`."""

    id: str
    number: int  # on its node
    model: str
    health: str
    health_reason: str
    health_since_s: float
    layout: str | None
    published: str | None
    node: str
    node_name: str
    node_state: str
    node_since_s: float
    cluster: str
    cluster_name: str
    region: str
    since_s: int
    shares: bool
    cutting: str
    closed: bool


def load_gpus(*, node: str = "", gpu: str = "") -> list[FleetGpu]:
    """Load all GPUs, those of one node, or one; three queries.

    They come in rack order. A GPU is named by its id, or by its node's id and its index, as in `nod_….3`.
    """
    which, loading = {"node": node, "gpu": gpu}, _GpuLoader(offered_profiles())
    gpus = {row[0]: loading.read_gpu(GpuRow(*row)) for row in query_rows("broker/reports/fleet_gpus", which)}
    for gpu_id, rows in groupby(query_rows("broker/reports/fleet_placements", which), key=itemgetter(0)):
        _attach_slices(gpus[gpu_id], [(isolation, LeasedSlice(*row)) for _, isolation, *row in rows])
    return list(gpus.values())


def offered_profiles() -> dict[PoolKey, tuple[Profile, ...]]:
    """Return the published profiles of each pool.

    They decide which free units are worth anything.
    """
    rows = Offering.objects.published().values_list("gpu_model_id", "region", "profile", "isolation")
    found: defaultdict[PoolKey, list[Profile]] = defaultdict(list)
    for model, region, profile, isolation in sorted(set(rows)):
        found[model, region].append(profile_named(model, profile, isolation))
    return {pool: tuple(profiles) for pool, profiles in found.items()}


class _GpuLoader:
    """A cache of values shared by GPUs of the same kind."""

    def __init__(self, offered: dict[PoolKey, tuple[Profile, ...]]) -> None:
        self._offered = offered
        self._sellable: dict[tuple[str, str, str | None, str | None], SellableProfiles] = {}

    def read_gpu(self, row: GpuRow) -> FleetGpu:
        why = ""
        try:
            sold = self._sold(row, row.layout or None)
        except ValueError as error:
            sold, why = self._sold(row, None), str(error)
        return FleetGpu(
            id=row.id,
            index=row.number,
            model=row.model,
            grid=sold.grid,
            health=GpuHealth(row.health),
            health_reason=row.health_reason,
            health_since_s=row.health_since_s,
            node=row.node,
            node_name=row.node_name,
            node_state=NodeState(row.node_state),
            node_since_s=row.node_since_s,
            cluster=row.cluster,
            cluster_name=row.cluster_name,
            region=row.region,
            since_s=row.since_s,
            shares=row.shares,
            cutting=row.cutting,
            closed=row.closed,
            sellable=sold,
            unreadable=why,
        )

    def _sold(self, row: GpuRow, layout: str | None) -> SellableProfiles:
        key = row.model, row.region, layout, row.published
        if key not in self._sellable:
            sold = self._offered.get((row.model, row.region), ())
            cut = parse_layout(row.model, layout) if layout else None
            publishes = parse_published(row.published).only(sold) if row.published else sold
            self._sellable[key] = sellable_profiles(publishes, _grid_of(row), cut)
        return self._sellable[key]


def _grid_of(row: GpuRow) -> int:
    """Return the units of a GPU, or those that a CPU block really has."""
    if row.model == CPU_MODEL_NAME:
        return units_in_block(json.loads(row.published) if row.published else None)
    return gpu_model_spec(row.model).grid


def _attach_slices(gpu: FleetGpu, placements: Iterable[tuple[str, LeasedSlice]]) -> None:
    """Attach placements to a GPU, each with its isolation."""
    isolations, slices = zip(*placements, strict=True)
    try:
        gpu.state = _occupied_state(gpu.model, isolations, tuple(each[:3] for each in slices))
    except ValueError as error:
        gpu.unreadable = str(error)
        taken = reduce(or_, (((1 << each.size) - 1) << each.start for each in slices))
        gpu.state = GpuState(taken, isolation=Isolation(isolations[0]))
    gpu.slices = [each._replace(state=STATES[each.state], price_class=CLASSES[each.price_class]) for each in slices]


@lru_cache(maxsize=16384)
def _occupied_state(model: str, isolations: tuple[str, ...], places: tuple[tuple[int, int, str], ...]) -> GpuState:
    """Return the state from isolations and (start, size, profile) rows.

    It decides what still fits beside them. Raises ValueError for a profile the model does not have there.
    """
    state = EMPTY_GPU
    for isolation, (start, size, profile) in zip(isolations, places, strict=True):
        its = profile_named(model, profile, isolation)
        if size != its.memory:
            raise ValueError(f"{profile} needs {its.memory} units, but {size} are allocated")
        state = state.with_held(its, its.placed_at(start))
    return state
