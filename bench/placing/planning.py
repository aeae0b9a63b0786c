"""Plans for a large fleet after some of what was on it has gone: how long each takes, how much it leaves undone."""

from dataclasses import dataclass
from random import Random
from time import process_time

from bench.placing.cards import PROFILES
from bench.placing.speed import filled, ranks
from bench.placing.workloads import MADE, spread
from broker.domain.placement.buckets import Buckets
from broker.domain.placement.fleet import Fleet, Slice
from broker.domain.placement.planning import Plan, defragment

CARDS, SEEDS = 10_000, (1, 2)
STAY = (0.4, 0.6, 0.8)  # of the leases


@dataclass(frozen=True)
class Planned:
    """A plan, how many seconds of one processor it took, and by how many percent it stays above the fewest cards."""

    plan: Plan
    took_s: float
    above: float


def all_planned() -> list[Planned]:
    """Plan for every mix, however much of it has gone."""
    return [planned(mix, stay, seed) for mix in MADE for stay in STAY for seed in SEEDS]


def planned(mix: str, stay: float, seed: int) -> Planned:
    """Fill a fleet by our rule, let some leases go, and plan."""
    chance = Random(seed)
    buckets = Buckets(ranks(), spread({8: CARDS // 8}))
    live = filled(buckets, chance.choices(range(len(PROFILES)), MADE[mix], k=33 * CARDS // 10))
    fleet = Fleet(Buckets(ranks(), spread({8: CARDS // 8})))
    for number, (card, profile, start) in enumerate(live):
        if chance.random() < stay:
            fleet.hold(card, Slice(str(number), profile, start, cost=1))
    began = process_time()
    plan = defragment(fleet, reason="some leases have gone")
    took = process_time() - began
    return Planned(plan, took, 100 * (plan.after / (plan.least or plan.after) - 1))
