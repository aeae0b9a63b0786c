"""Latency of one decision at any fleet size, beside a scan of all GPUs."""

import gc
from dataclasses import dataclass
from random import Random
from statistics import quantiles
from time import perf_counter, perf_counter_ns, process_time

from bench.placement_policies.gpu_profiles import COUNTED, MODEL, ONE, PROFILES
from bench.placement_policies.workloads import MADE, spread
from broker.domain.placement.buckets.warm_buckets import WarmBuckets
from broker.domain.placement.costs import slice_prices
from broker.domain.placement.costs.bid_price_rule import bid_price_ranks
from broker.domain.placement.costs.state_ranks import StateRanks
from broker.domain.placement.costs.state_tables import NO_STATE

MIX, ROUNDS, SCANS = "skew_small6", 60_000, 40
FULL = 0.9  # of the units
Held = tuple[int, int, int]  # GPU, profile, first unit


@dataclass(frozen=True)
class Speed:
    """Timings of one fleet, nine tenths full."""

    gpus: int
    live: int
    full: float  # percent of the units
    p50_us: float
    p99_us: float
    pairs_per_s: float
    scan_us: float


def ranks() -> StateRanks:
    return bid_price_ranks(
        PROFILES, MODEL.grid, slice_prices.default_prices(PROFILES, MODEL.grid, MODEL.compute), counted=True
    )


def speed_of(gpus: int, seed: int = 1) -> Speed:
    """Fill a fleet, then time placements, each after one random departure."""
    rng = Random(seed)
    buckets = WarmBuckets(ranks(), spread({8: gpus // 8}))
    live = filled(buckets, rng.choices(range(len(PROFILES)), MADE[MIX], k=33 * gpus // 10))
    full = 100 * (1 - sum(COUNTED.free_units(state) for state in buckets.state_of) / (MODEL.grid * gpus))
    count = len(live)
    gc.freeze()  # what is there already is not looked at again and again
    took = sorted(timed(buckets, live, rng))
    pairs = pairs_per_second(buckets, live, rng)
    gc.unfreeze()
    parts = quantiles(took, n=100)
    return Speed(gpus, count, full, parts[49] / 1e3, parts[98] / 1e3, pairs, scan_us(buckets, rng))


def filled(buckets: WarmBuckets, wanted: list[int]) -> list[Held]:
    """Place requests until the fleet has reached the target utilisation."""
    found, units = [], FULL * MODEL.grid * len(buckets.state_of)
    for profile in wanted:
        if units <= 0:
            break
        if slot := buckets.place_cheapest(profile):
            found.append((slot[0], profile, slot[1]))
            units -= PROFILES[profile].memory
    return found


def timed(buckets: WarmBuckets, live: list[Held], rng: Random) -> list[int]:
    """Return the nanoseconds of each placement."""
    took = []
    for profile in rng.choices(range(len(PROFILES)), MADE[MIX], k=ROUNDS):
        at = int(rng.random() * len(live))
        live[at], live[-1] = live[-1], live[at]
        buckets.release(*live.pop())
        began = perf_counter_ns()
        slot = buckets.place_cheapest(profile)
        took_ns = perf_counter_ns() - began
        if slot:  # a refusal is quicker than a choice
            took.append(took_ns)
            live.append((slot[0], profile, slot[1]))
    return took


def pairs_per_second(buckets: WarmBuckets, live: list[Held], rng: Random) -> float:
    """Return departures and placements of one profile per CPU second, in pairs."""
    gone = [live[at] for at in rng.sample(range(len(live)), min(ROUNDS, len(live)))]
    place, release = buckets.place_cheapest, buckets.release
    began = process_time()
    for gpu, profile, start in gone:
        release(gpu, profile, start)
        place(profile)
    return len(gone) / (process_time() - began)


def scan_us(buckets: WarmBuckets, rng: Random) -> float:
    """Return the time of the same decision by scanning every GPU."""
    began = perf_counter()
    for profile in rng.choices(range(len(PROFILES)), MADE[MIX], k=SCANS):
        bit, state = buckets.ranks.rank_bit[profile], buckets.state_of
        min(range(len(state)), key=lambda gpu: bit[state[gpu]] or 1 << 400)
    return 1e6 * (perf_counter() - began) / SCANS


def rebuilding_s(allocations: int) -> float:
    """Return the CPU seconds of building buckets from so many smallest slices."""
    each = sum(1 for after in COUNTED.state_with[ONE].values() if after[0] != NO_STATE)
    held = [(n // each, ONE, n % each) for n in range(allocations)]
    Random(1).shuffle(held)
    nodes, order = spread({8: -(-allocations // (8 * each))}), ranks()
    began = process_time()
    buckets = WarmBuckets(order, nodes)
    for gpu, profile, start in held:
        buckets.place_at(gpu, profile, start)
    return process_time() - began
