"""How long the product's own index takes, which chooses by ids and never by what happened before."""

import gc
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from statistics import quantiles
from time import perf_counter, perf_counter_ns

from bench.placing.cards import MODEL, PROFILES
from bench.placing.workloads import MADE
from broker.domain.placement.gangs import gang_of
from broker.domain.placement.pool import CardView, PoolIndex, Seat
from broker.domain.profiles import Profile

MIX, ROUNDS, GANGS, CHANGES = "skew_small6", 20_000, 20, 20_000


@dataclass(frozen=True)
class Choosing:
    """Of one pool that is nearly full: one choice, a gang, a change of a card."""

    cards: int
    p50_us: float
    p99_us: float
    same_node_ms: float  # four slices on one node
    anywhere_ms: float  # four slices on any
    changed_us: float  # a card leaves and comes back


def choosing(cards: int, seed: int = 1) -> Choosing:
    """Fill a pool, then choose, hold and let go; ask for gangs; and let cards leave and come back."""
    chance = Random(seed)
    pool = PoolIndex(MODEL, [CardView(f"gpu_{n:07}", f"node_{n // 8:06}") for n in range(cards)])
    live = _filled(pool, chance.choices(PROFILES, MADE[MIX], k=29 * cards // 10))
    gc.freeze()
    took = []
    for profile in chance.choices(PROFILES, MADE[MIX], k=ROUNDS):
        at = chance.randrange(len(live))
        live[at], live[-1] = live[-1], live[at]
        pool.release(*live.pop())
        began_ns = perf_counter_ns()
        seat = pool.choose(profile)
        took.append(perf_counter_ns() - began_ns)
        if seat:
            pool.hold(seat, profile)
            live.append((seat, profile))
    two = MODEL.profile("2g.20gb", PROFILES[0].isolation)
    together = _mean_ms(lambda: gang_of(pool, two, count=4, same_node=True))
    anywhere = _mean_ms(lambda: gang_of(pool, two, count=4, same_node=False))
    changing = chance.choices([f"gpu_{n:07}" for n in range(cards)], k=CHANGES)
    began = perf_counter()
    for gpu in changing:
        pool.add(pool.remove(gpu))
    changed = 1e6 * (perf_counter() - began) / CHANGES
    gc.unfreeze()
    parts = quantiles(took, n=100)
    return Choosing(cards, parts[49] / 1e3, parts[98] / 1e3, together, anywhere, changed)


def _filled(pool: PoolIndex, wanted: list[Profile]) -> list[tuple[Seat, Profile]]:
    live = []
    for profile in wanted:
        if seat := pool.choose(profile):
            pool.hold(seat, profile)
            live.append((seat, profile))
    return live


def _mean_ms(act: Callable[[], object]) -> float:
    began = perf_counter()
    for _ in range(GANGS):
        act()
    return 1e3 * (perf_counter() - began) / GANGS
