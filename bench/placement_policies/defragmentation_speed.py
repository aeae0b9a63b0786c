"""Benchmark of defragmentation plans for a large fleet after departures.

It measures their time, and how far from optimal they stay.
"""

from dataclasses import dataclass
from random import Random
from time import process_time

from bench.placement_policies.gpu_profiles import PROFILES
from bench.placement_policies.speed import filled, ranks
from bench.placement_policies.workloads import MADE, spread
from broker.domain.defragmentation.defragmentation_plan import DefragmentationPlan, plan_defragmentation
from broker.domain.defragmentation.fleet import LiveSlice, SliceFleet
from broker.domain.placement.buckets.state_buckets import StateBuckets

GPUS, SEEDS = 10_000, (1, 2)
STAY = (0.4, 0.6, 0.8)  # of the leases


@dataclass(frozen=True)
class Planned:
    """A plan, its CPU seconds, and its percentage above the fewest GPUs."""

    plan: DefragmentationPlan
    took_s: float
    above: float


def all_planned() -> list[Planned]:
    """Plan for every mix and every share of departures."""
    return [planned(mix, stay, seed) for mix in MADE for stay in STAY for seed in SEEDS]


def planned(mix: str, stay: float, seed: int) -> Planned:
    """Fill a fleet by our rule, remove some leases, and plan."""
    rng = Random(seed)
    buckets = StateBuckets(ranks(), spread({8: GPUS // 8}))
    live = filled(buckets, rng.choices(range(len(PROFILES)), MADE[mix], k=33 * GPUS // 10))
    fleet = SliceFleet(StateBuckets(ranks(), spread({8: GPUS // 8})))
    for number, (gpu, profile, start) in enumerate(live):
        if rng.random() < stay:
            fleet.place_on(gpu, LiveSlice(str(number), profile, start, cost=1))
    began = process_time()
    plan = plan_defragmentation(fleet, reason="some leases have gone")
    took = process_time() - began
    return Planned(plan, took, 100 * (plan.gpus_after / (plan.min_gpus or plan.gpus_after) - 1))
