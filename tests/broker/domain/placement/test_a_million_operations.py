"""A million random placements and releases."""

from random import Random

import pytest

from broker.domain.geometry.gpu_models import GpuModelSpec
from broker.domain.lifecycle.states import Isolation
from broker.domain.placement.buckets.warm_buckets import WarmBuckets
from broker.domain.placement.costs.bid_price_rule import bid_price_ranks
from broker.domain.placement.costs.state_tables import EMPTY
from broker.domain.placement.gpu_kinds import all_profiles
from tests.broker.domain.fleet import A30, H100, PRO_6000

GPUS = 64


@pytest.mark.parametrize(
    ("model", "operations"),
    [(H100, 10**6), (A30, 10**5), (PRO_6000, 10**5)],
    ids=["H100", "A30", "RTX-PRO-6000"],
)
def test_random_operations_use_only_legal_placements_without_overlap(model: GpuModelSpec, operations: int) -> None:
    profiles, chance = all_profiles(model), Random(5).random
    worth = tuple(float(its.memory) for its in profiles)
    # As the product stores GPUs that are partitioned per lease.
    buckets = WarmBuckets(bid_price_ranks(profiles, model.grid, worth, counted=True), [gpu // 8 for gpu in range(GPUS)])
    units = [{place.start: place.mask for place in its.placements} for its in profiles]
    taken, media, serves = [0] * GPUS, [0] * GPUS, dict[int, Isolation]()
    live: list[tuple[int, int, int]] = []
    placed = refused = 0
    for _ in range(operations):
        if chance() < 0.55:
            profile = int(chance() * len(profiles))
            if seat := buckets.place_cheapest(profile):
                gpu, start = seat
                mask = units[profile][start]  # a KeyError would be a place that the GPU does not have
                assert taken[gpu] & mask == 0
                assert serves.setdefault(gpu, profiles[profile].isolation) is profiles[profile].isolation
                taken[gpu] |= mask
                media[gpu] += profiles[profile].media
                assert media[gpu] <= 1
                live.append((gpu, profile, start))
                placed += 1
            else:
                refused += 1
        elif live:
            at = int(chance() * len(live))
            live[at], live[-1] = live[-1], live[at]
            gpu, profile, start = live.pop()
            buckets.release(gpu, profile, start)
            taken[gpu] ^= units[profile][start]
            media[gpu] -= profiles[profile].media
            if not taken[gpu]:
                del serves[gpu]
    assert min(placed, refused) > operations // 20  # the fleet was often full
    for gpu, profile, start in live:
        buckets.release(gpu, profile, start)
    assert buckets.state_of == [EMPTY] * GPUS
