"""How long one decision takes, whatever the size of the fleet, beside a scan of all its cards."""

import gc
from dataclasses import dataclass
from random import Random
from statistics import quantiles
from time import perf_counter, perf_counter_ns, process_time

from bench.placing.cards import COUNTED, MODEL, ONE, PROFILES
from bench.placing.workloads import MADE, spread
from broker.domain.placement import prices
from broker.domain.placement.ranks import Ranks
from broker.domain.placement.rules import ranks_by_price
from broker.domain.placement.tables import NOWHERE
from broker.domain.placement.warm_buckets import WarmBuckets

MIX, ROUNDS, SCANS = "skew_small6", 60_000, 40
FULL = 0.9  # of the units
Held = tuple[int, int, int]  # card, profile, first unit


@dataclass(frozen=True)
class Speed:
    """Of one fleet, nine tenths full."""

    cards: int
    live: int
    full: float  # percent of the units
    p50_us: float
    p99_us: float
    pairs_per_s: float
    scan_us: float


def ranks() -> Ranks:
    return ranks_by_price(
        PROFILES, MODEL.grid, prices.default(PROFILES, MODEL.grid, MODEL.compute), counted=True
    )


def speed_of(cards: int, seed: int = 1) -> Speed:
    """Fill a fleet, then time what is placed after one random lease has gone, one after the other."""
    chance = Random(seed)
    buckets = WarmBuckets(ranks(), spread({8: cards // 8}))
    live = filled(buckets, chance.choices(range(len(PROFILES)), MADE[MIX], k=33 * cards // 10))
    full = 100 * (1 - sum(COUNTED.free(state) for state in buckets.state) / (MODEL.grid * cards))
    count = len(live)
    gc.freeze()  # what is there already is not looked at again and again
    took = sorted(timed(buckets, live, chance))
    pairs = pairs_per_second(buckets, live, chance)
    gc.unfreeze()
    parts = quantiles(took, n=100)
    return Speed(cards, count, full, parts[49] / 1e3, parts[98] / 1e3, pairs, scan_us(buckets, chance))


def filled(buckets: WarmBuckets, wanted: list[int]) -> list[Held]:
    """Place what is asked for until the fleet is as full as it is to be."""
    found, units = [], FULL * MODEL.grid * len(buckets.state)
    for profile in wanted:
        if units <= 0:
            break
        if seat := buckets.place(profile):
            found.append((seat[0], profile, seat[1]))
            units -= PROFILES[profile].memory
    return found


def timed(buckets: WarmBuckets, live: list[Held], chance: Random) -> list[int]:
    """Return the nanoseconds that each of the placements took."""
    took = []
    for profile in chance.choices(range(len(PROFILES)), MADE[MIX], k=ROUNDS):
        at = int(chance.random() * len(live))
        live[at], live[-1] = live[-1], live[at]
        buckets.release(*live.pop())
        began = perf_counter_ns()
        seat = buckets.place(profile)
        took_ns = perf_counter_ns() - began
        if seat:  # a refusal is quicker than a choice
            took.append(took_ns)
            live.append((seat[0], profile, seat[1]))
    return took


def pairs_per_second(buckets: WarmBuckets, live: list[Held], chance: Random) -> float:
    """Return how often in a second of one processor a lease goes and one of the same profile is placed."""
    gone = [live[at] for at in chance.sample(range(len(live)), min(ROUNDS, len(live)))]
    place, release = buckets.place, buckets.release
    began = process_time()
    for card, profile, start in gone:
        release(card, profile, start)
        place(profile)
    return len(gone) / (process_time() - began)


def scan_us(buckets: WarmBuckets, chance: Random) -> float:
    """Return the time of the same decision by looking at every card, the way it is done without buckets."""
    began = perf_counter()
    for profile in chance.choices(range(len(PROFILES)), MADE[MIX], k=SCANS):
        bit, state = buckets.ranks.bit[profile], buckets.state
        min(range(len(state)), key=lambda card: bit[state[card]] or 1 << 400)
    return 1e6 * (perf_counter() - began) / SCANS


def rebuilding_s(allocations: int) -> float:
    """Return the seconds of one processor in which so many allocations, all of the smallest slice, become buckets."""
    each = sum(1 for after in COUNTED.put[ONE].values() if after[0] != NOWHERE)
    held = [(n // each, ONE, n % each) for n in range(allocations)]
    Random(1).shuffle(held)
    nodes, order = spread({8: -(-allocations // (8 * each))}), ranks()
    began = process_time()
    buckets = WarmBuckets(order, nodes)
    for card, profile, start in held:
        buckets.hold(card, profile, start)
    return process_time() - began
