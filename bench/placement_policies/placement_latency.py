"""Latency of the product's own placement index.

It chooses by ids, and never by what happened before.
"""

import gc
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from statistics import quantiles
from time import perf_counter, perf_counter_ns

from bench.placement_policies.gpu_profiles import MODEL, PROFILES
from bench.placement_policies.speed import FULL
from bench.placement_policies.workloads import MADE
from broker.domain.geometry.gpu_state import EMPTY_GPU
from broker.domain.geometry.profiles import Placement, Profile
from broker.domain.placement.gangs.gang_search import find_gang_slots
from broker.domain.placement.gangs.topology import GpuLink, Topology
from broker.domain.placement.pool import GpuView, PoolIndex
from broker.domain.placement.slots import Slot
from broker.domain.placement.warm_slices import NO_WARM_SLICES

PAIRS = tuple(tuple(GpuLink.BRIDGE if a // 2 == b // 2 else GpuLink.NUMA for b in range(8)) for a in range(8))
MIX, ROUNDS, GANGS, CHANGES = "skew_small6", 20_000, 20, 20_000


@dataclass(frozen=True)
class Choosing:
    """Timings of a pool nine tenths full: a choice, a gang, a GPU change."""

    gpus: int
    p50_us: float
    p99_us: float
    same_node_ms: float  # four slices on one node, a little having changed since the last ask
    first_ms: float  # the first time that anybody asks for these
    whole_ms: float  # four whole GPUs on one node whose links are known, as above
    anywhere_ms: float  # four slices on any
    changed_us: float  # a GPU leaves and comes back


def choosing(gpus: int, seed: int = 1) -> Choosing:
    """Fill a pool, then time choices, gangs, and GPUs leaving and returning."""
    rng = Random(seed)
    cold = [GpuView(f"gpu_{n:07}", f"node_{n // 8:06}", EMPTY_GPU, None, NO_WARM_SLICES) for n in range(gpus)]
    pool = PoolIndex(MODEL, cold)
    live = _filled(pool, rng.choices(PROFILES, MADE[MIX], k=33 * gpus // 10), gpus)
    gc.freeze()
    took = []
    for profile in rng.choices(PROFILES, MADE[MIX], k=ROUNDS):
        at = rng.randrange(len(live))
        live[at], live[-1] = live[-1], live[at]
        pool.release(*live.pop())
        began_ns = perf_counter_ns()
        slot = pool.find_cheapest_slot(profile)
        took_ns = perf_counter_ns() - began_ns
        if slot:  # a refusal is quicker than a choice
            took.append(took_ns)
            pool.hold(slot, profile)
            live.append((slot, profile))
    two = MODEL.profile("2g.20gb", PROFILES[0].isolation)
    first = _timed_ms(lambda: find_gang_slots(pool, two, count=4, same_node=True))

    def change() -> None:
        pool.release(*live[-1])
        pool.hold(*live[-1])

    together = _mean_ms(lambda: find_gang_slots(pool, two, count=4, same_node=True), before=change)
    anywhere = _mean_ms(lambda: find_gang_slots(pool, two, count=4, same_node=False))
    changing = rng.choices([f"gpu_{n:07}" for n in range(gpus)], k=CHANGES)
    began = perf_counter()
    for gpu in changing:
        pool.add(pool.remove(gpu))
    changed = 1e6 * (perf_counter() - began) / CHANGES
    gc.unfreeze()
    parts = quantiles(took, n=100)
    whole = _whole_ms(gpus, rng)
    return Choosing(gpus, parts[49] / 1e3, parts[98] / 1e3, together, first, whole, anywhere, changed)


def _whole_ms(gpus: int, rng: Random) -> float:
    """Time gangs of four whole GPUs on partly used nodes with GPUs bridged in pairs."""
    nodes = {f"node_{n:06}": [f"gpu_{n:06}_{c}" for c in range(8)] for n in range(gpus // 8)}
    pool = PoolIndex(MODEL, [GpuView(gpu, node) for node, its in nodes.items() for gpu in its])
    topologies = {node: Topology(tuple(its), PAIRS) for node, its in nodes.items()}
    whole_gpu, whole = Placement(0, MODEL.grid), MODEL.whole
    held = [Slot(gpu, whole_gpu) for its in nodes.values() for gpu in rng.sample(its, rng.randrange(9))]
    for slot in held:
        pool.hold(slot, whole)

    def change() -> None:
        at = rng.randrange(len(held))
        pool.release(held[at], whole)
        found = pool.find_cheapest_slot(whole)
        if found:
            held[at] = found
            pool.hold(found, whole)

    find_gang_slots(pool, whole, count=4, same_node=True, topologies=topologies)
    return _mean_ms(lambda: find_gang_slots(pool, whole, count=4, same_node=True, topologies=topologies), before=change)


def _filled(pool: PoolIndex, wanted: list[Profile], gpus: int) -> list[tuple[Slot, Profile]]:
    live, units = [], FULL * MODEL.grid * gpus
    for profile in wanted:
        if units <= 0:
            break
        if slot := pool.find_cheapest_slot(profile):
            pool.hold(slot, profile)
            live.append((slot, profile))
            units -= profile.memory
    return live


def _mean_ms(act: Callable[[], object], *, before: Callable[[], object] = int) -> float:
    """Return the mean time of a function over a few calls, each after untimed setup."""
    took = 0.0
    for _ in range(GANGS):
        before()
        took += _timed_ms(act)
    return took / GANGS


def _timed_ms(act: Callable[[], object]) -> float:
    began = perf_counter()
    act()
    return 1e3 * (perf_counter() - began)
