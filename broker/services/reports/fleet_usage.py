"""GPU-seconds of the fleet by use since a given time. Requires staff scope."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from django.db import connection

from broker.domain.geometry.gpu_state import GpuState
from broker.domain.lifecycle.states import Isolation, PriceClass
from broker.models import GpuHealth, InventoryChange, NodeState
from broker.services.inventory.gpu_catalogue import profile_named
from broker.services.reports.gpu_usage import SCALE, FleetGpu, UnitUse, only_gpus, use_when_free
from ports.postgres.sql_statements import load_sql

Outage = tuple[int, int, UnitUse]  # start, end, and the use to report for free units
SliceKind = tuple[bool, Isolation]  # whether a slice has the media engines, and its isolation


class HeldInterval(NamedTuple):
    """Time a placement was held in the report period, and its charged seconds."""

    mask: int
    size: int
    uses_media_engines: bool
    isolation: Isolation
    since: int
    until: int
    sold_s: int
    use: UnitUse


@dataclass(frozen=True)
class FleetUsage:
    """GPU-seconds × SCALE by use; `total` is computed independently, as a control total."""

    total: int
    by_use: dict[UnitUse, int]

    @property
    def sum_by_use(self) -> int:
        return sum(self.by_use.values())


def measure_fleet_usage(moment: datetime, gpus: Sequence[FleetGpu], *, now: datetime) -> FleetUsage:
    """Return the fleet's GPU-seconds by use from a moment until now; CPU blocks have none."""
    gpus = only_gpus(gpus)
    start, end = int(moment.timestamp()), int(now.timestamp())
    intervals, outages = _load_intervals(gpus, start, end), _load_outages(moment, gpus, end)
    seconds_by_use: Counter[tuple[UnitUse, int]] = Counter()
    total = 0
    for gpu in gpus:
        first = min(max(start, gpu.since_s), end)
        total += end - first
        for each in intervals[gpu.id]:
            seconds_by_use[each.use, gpu.grid] += each.size * each.sold_s
            seconds_by_use[UnitUse.RESERVED, gpu.grid] += each.size * (each.until - each.since - each.sold_s)
        for use, units, seconds in _free_unit_seconds(gpu, intervals[gpu.id], outages[gpu.id], first, end):
            seconds_by_use[use, gpu.grid] += units * seconds
    by_use = dict.fromkeys(UnitUse, 0)
    for (use, grid), unit_seconds in seconds_by_use.items():
        by_use[use] += unit_seconds * SCALE // grid
    return FleetUsage(total * SCALE, by_use)


def _free_unit_seconds(
    gpu: FleetGpu, intervals: Sequence[HeldInterval], outages: Sequence[Outage], start: int, end: int
) -> Iterator[tuple[UnitUse, int, int]]:
    """Yield (use, units, seconds) of units without a slice: free, fragmented, out of service."""
    moments = {start, end}
    for interval in intervals:
        moments.add(interval.since)
        moments.add(interval.until)
    for since, until, _ in outages:
        moments |= {since, until}
    for at, next_at in pairwise(sorted(moment for moment in moments if start <= moment <= end)):
        state = _state_at(intervals, at)
        outage_use = next((use for since, until, use in outages if since <= at < until), None)
        free = gpu.grid - state.mask.bit_count()
        lost = 0 if outage_use or not free else gpu.sellable.unsellable_units(state).bit_count()
        yield outage_use or UnitUse.FREE, free - lost, next_at - at
        yield UnitUse.FRAGMENTED, lost, next_at - at


def _state_at(intervals: Iterable[HeldInterval], at: int) -> GpuState:
    """Return the GPU's occupancy at a moment, from which fragmented units are computed."""
    mask, media, isolation = 0, False, None
    for interval in intervals:
        if interval.since <= at < interval.until:
            mask, media, isolation = mask | interval.mask, media or interval.uses_media_engines, interval.isolation
    return GpuState(mask, media, 0, isolation)


def _load_intervals(gpus: Sequence[FleetGpu], start: int, end: int) -> dict[str, list[HeldInterval]]:
    """Return the placements on each GPU in the window.

    A placement that is read twice, as held and as ended since, counts once.
    """
    by_gpu: dict[str, dict[tuple[str, int, float], HeldInterval]] = {gpu.id: {} for gpu in gpus}
    models = {gpu.id: gpu.model for gpu in gpus}
    with connection.cursor() as cursor:
        cursor.execute(load_sql("broker/reports/ended_placements"), {"since": start, "until": end})
        for gpu_id, lease, isolation, at, size, name, price_class, held_s, until, *sold in cursor.fetchall():
            if gpu_id not in models:
                continue
            kind, since = _slice_kind(models[gpu_id], name, isolation), max(int(held_s), start)
            sold_s = max(0, min(until, sold[1]) - max(since, sold[0]))
            by_gpu[gpu_id][lease, at, held_s] = _held_interval(kind, at, size, since, until, sold_s, price_class)
    for gpu in gpus:
        ended = by_gpu[gpu.id]
        for leased in gpu.slices:
            if (key := (leased.lease, leased.start, leased.held_s)) not in ended:
                kind = _slice_kind(gpu.model, leased.profile, gpu.state.isolation or "")
                since = min(max(int(leased.held_s), start), end)
                sold_s = 0 if leased.sold_s is None else max(0, end - max(since, leased.sold_s))
                ended[key] = _held_interval(kind, leased.start, leased.size, since, end, sold_s, leased.price_class)
    return {gpu_id: list(intervals.values()) for gpu_id, intervals in by_gpu.items()}


@lru_cache(maxsize=4096)
def _slice_kind(model: str, profile: str, isolation: str) -> SliceKind:
    try:
        return profile_named(model, profile, isolation).media, Isolation(isolation)
    except ValueError:  # no such profile: the GPU is reported as unreadable
        return False, Isolation(isolation)


def _held_interval(
    kind: SliceKind, at: int, size: int, since: int, until: int, sold_s: int, price_class: str
) -> HeldInterval:
    use = UnitUse.SPOT if price_class == PriceClass.SPOT else UnitUse.SOLD
    return HeldInterval(((1 << size) - 1) << at, size, *kind, since, until, sold_s, use)


def _load_outages(moment: datetime, gpus: Sequence[FleetGpu], end: int) -> dict[str, list[Outage]]:
    """Return when each GPU could not be sold; unhealthy spans come first."""
    changes: defaultdict[str, list[tuple[int, str, str]]] = defaultdict(list)
    rows = InventoryChange.objects.filter(at__gt=moment).order_by("at", "id")
    for at, node, gpu_id, before, after in rows.values_list("at", "node_id", "gpu_id", "before", "after"):
        changes[gpu_id or node].append((int(at.timestamp()), before, after))
    start = int(moment.timestamp())
    outages_by_gpu: dict[str, list[Outage]] = {}
    for gpu in gpus:
        if gpu.id not in changes and gpu.node not in changes:
            use = use_when_free(gpu.health, gpu.node_state)
            outages_by_gpu[gpu.id] = [(start, end, use)] if use else []
            continue
        gpu_spans = _spans(changes[gpu.id], gpu.health, start, end)
        node_spans = _spans(changes[gpu.node], gpu.node_state, start, end)
        outages = [(s, e, use_when_free(GpuHealth(state), NodeState.READY)) for s, e, state in gpu_spans]
        outages += [(s, e, use_when_free(GpuHealth.HEALTHY, NodeState(state))) for s, e, state in node_spans]
        not_sellable = [(s, e, use) for s, e, use in outages if use is not None]
        outages_by_gpu[gpu.id] = sorted(not_sellable, key=lambda outage: outage[2] is not UnitUse.UNHEALTHY)
    return outages_by_gpu


def _spans(changes: Iterable[tuple[int, str, str]], now: str, start: int, end: int) -> Iterator[tuple[int, int, str]]:
    """Yield (start, end, state) spans from changes and the current state `now`."""
    state, since = now, start
    for at, before, after in changes:
        at = min(max(at, since), end)
        yield since, at, before
        state, since = after, at
    yield since, end, state


def start_of_day(now: datetime) -> datetime:
    """Return the beginning of the day in UTC."""
    return now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
