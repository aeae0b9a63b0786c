"""Fleet usage accounting in unit-seconds since a moment. Must run as staff."""

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
from broker.services.reports.gpu_usage import SCALE, FleetGpu, UnitUse, use_when_free
from ports.postgres.sql_statements import load_sql

Outage = tuple[int, int, UnitUse]
SliceKind = tuple[bool, Isolation]  # whether a slice has the media engines, and its isolation


class HeldInterval(NamedTuple):
    """A placement in the window: its times and its charged seconds."""

    bits: int
    size: int
    media: bool
    isolation: Isolation
    since: int
    until: int
    sold_s: int
    use: UnitUse


@dataclass(frozen=True)
class FleetHours:
    """Seconds × SCALE of a GPU by use; `total` is counted from the GPUs alone."""

    total: int
    by_use: dict[UnitUse, int]

    @property
    def explained(self) -> int:
        return sum(self.by_use.values())


def account_since(moment: datetime, gpus: Sequence[FleetGpu], *, now: datetime) -> FleetHours:
    """Account for the fleet's time from a moment until now."""
    start, end = int(moment.timestamp()), int(now.timestamp())
    held, outages = _load_intervals(gpus, start, end), _load_outages(moment, gpus, end)
    spent: Counter[tuple[UnitUse, int]] = Counter()
    total = 0
    for gpu in gpus:
        first = min(max(start, gpu.since_s), end)
        total += end - first
        for h in held[gpu.id]:
            spent[h.use, gpu.grid] += h.size * h.sold_s
            spent[UnitUse.RESERVED, gpu.grid] += h.size * (h.until - h.since - h.sold_s)
        for use, units, seconds in _free_unit_seconds(gpu, held[gpu.id], outages[gpu.id], first, end):
            spent[use, gpu.grid] += units * seconds
    by_use = dict.fromkeys(UnitUse, 0)
    for (use, grid), unit_seconds in spent.items():
        by_use[use] += unit_seconds * SCALE // grid
    return FleetHours(total * SCALE, by_use)


def _free_unit_seconds(
    gpu: FleetGpu, held: Sequence[HeldInterval], outages: Sequence[Outage], start: int, end: int
) -> Iterator[tuple[UnitUse, int, int]]:
    """Yield (use, units, seconds) of the free units of one GPU."""
    moments = {start, end}
    for h in held:
        moments.add(h.since)
        moments.add(h.until)
    for since, until, _ in outages:
        moments |= {since, until}
    for at, then in pairwise(sorted(m for m in moments if start <= m <= end)):
        state = _state_at(held, at)
        idle = next((use for since, until, use in outages if since <= at < until), None)
        free = gpu.grid - state.mask.bit_count()
        lost = 0 if idle or not free else gpu.sellable.lost(state).bit_count()
        yield idle or UnitUse.FREE, free - lost, then - at
        yield UnitUse.FRAGMENTED, lost, then - at


def _state_at(held: Iterable[HeldInterval], at: int) -> GpuState:
    """Return the GPU's state at a moment, which decides what free units are worth."""
    mask, media, isolation = 0, False, None
    for h in held:
        if h.since <= at < h.until:
            mask, media, isolation = mask | h.bits, media or h.media, h.isolation
    return GpuState(mask, media, 0, isolation)


def _load_intervals(gpus: Sequence[FleetGpu], start: int, end: int) -> dict[str, list[HeldInterval]]:
    """Return the placements on each GPU in the window.

    A placement that is read twice, as held and as ended since, counts once.
    """
    found: dict[str, dict[tuple[str, int, float], HeldInterval]] = {gpu.id: {} for gpu in gpus}
    models = {gpu.id: gpu.model for gpu in gpus}
    with connection.cursor() as cursor:
        cursor.execute(load_sql("broker/reports/ended_placements"), {"since": start, "until": end})
        for gpu_id, lease, isolation, at, size, name, price_class, held_s, until, *sold in cursor.fetchall():
            kind, since = _slice_kind(models[gpu_id], name, isolation), max(int(held_s), start)
            sold_s = max(0, min(until, sold[1]) - max(since, sold[0]))
            found[gpu_id][lease, at, held_s] = _held_interval(kind, at, size, since, until, sold_s, price_class)
    for gpu in gpus:
        ended = found[gpu.id]
        for s in gpu.slices:
            if (which := (s.lease, s.start, s.held_s)) not in ended:
                kind = _slice_kind(gpu.model, s.profile, gpu.state.isolation or "")
                since = min(max(int(s.held_s), start), end)
                sold_s = 0 if s.sold_s is None else max(0, end - max(since, s.sold_s))
                ended[which] = _held_interval(kind, s.start, s.size, since, end, sold_s, s.price_class)
    return {gpu_id: list(lying.values()) for gpu_id, lying in found.items()}


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
    found: dict[str, list[Outage]] = {}
    for gpu in gpus:
        if gpu.id not in changes and gpu.node not in changes:
            use = use_when_free(gpu.health, gpu.node_state)
            found[gpu.id] = [(start, end, use)] if use else []
            continue
        itself = _spans(changes[gpu.id], gpu.health, start, end)
        under = _spans(changes[gpu.node], gpu.node_state, start, end)
        outages = [(s, e, use_when_free(GpuHealth(word), NodeState.READY)) for s, e, word in itself]
        outages += [(s, e, use_when_free(GpuHealth.HEALTHY, NodeState(word))) for s, e, word in under]
        wrong = [(s, e, use) for s, e, use in outages if use is not None]
        found[gpu.id] = sorted(wrong, key=lambda outage: outage[2] is not UnitUse.UNHEALTHY)
    return found


def _spans(changes: Iterable[tuple[int, str, str]], now: str, start: int, end: int) -> Iterator[tuple[int, int, str]]:
    """Yield (start, end, word) spans from changes and the current word."""
    word, since = now, start
    for at, before, after in changes:
        at = min(max(at, since), end)
        yield since, at, before
        word, since = after, at
    yield since, end, word


def start_of_day(now: datetime) -> datetime:
    """Return the beginning of the day in UTC."""
    return now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
