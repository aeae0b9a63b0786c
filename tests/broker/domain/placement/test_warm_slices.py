"""Warm slices that remain on a GPU after a release."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.domain.geometry.gpu_state import PlacedSlice
from broker.domain.geometry.profiles import Profile, share_profiles
from broker.domain.lifecycle.states import Isolation
from broker.domain.placement.warm_slices import (
    NO_WARM_SLICES,
    PartitioningEffort,
    WarmSlices,
    after_placing,
    after_release,
    partitioning_effort,
    remaining_warm_slices,
)
from tests.broker.domain.fleet import FOUR, H100, ONE, SEVEN, THREE, TWO, cut
from tests.broker.domain.placement.naive_pool import NaiveGpu, all_profiles

HALF, _ = share_profiles(grid=8, isolation=Isolation.SOFT)
MEDIA = cut("1g.10gb+me")
PROFILES = all_profiles(H100)


def at(profile: Profile, start: int) -> PlacedSlice:
    return PlacedSlice(profile.placed_at(start), profile)


def warm(*left: PlacedSlice) -> WarmSlices:
    return frozenset(left)


@pytest.mark.parametrize(
    ("wanted", "how"),
    [
        (at(TWO, 2), PartitioningEffort.REUSE),
        (at(TWO, 4), PartitioningEffort.CREATE),
        (at(ONE, 2), PartitioningEffort.REPLACE),
        (at(THREE, 0), PartitioningEffort.REPLACE),
        (at(H100.whole, 0), PartitioningEffort.REPLACE),
    ],
)
def test_only_an_identical_warm_slice_is_reused(wanted: PlacedSlice, how: PartitioningEffort) -> None:
    assert partitioning_effort(warm(at(TWO, 2)), wanted.profile, wanted.placement) is how


def test_a_placed_slice_destroys_only_the_warm_slices_that_it_overlaps() -> None:
    left = warm(at(ONE, 0), at(ONE, 1), at(TWO, 4))
    assert after_placing(left, TWO, TWO.placed_at(0)) == warm(at(TWO, 4))
    assert after_placing(left, TWO, TWO.placed_at(4)) == warm(at(ONE, 0), at(ONE, 1))


def test_a_warm_media_engine_slice_is_destroyed_for_a_new_one() -> None:
    left = warm(at(MEDIA, 0), at(ONE, 1))
    assert partitioning_effort(left, MEDIA, MEDIA.placed_at(3)) is PartitioningEffort.REPLACE
    assert after_placing(left, MEDIA, MEDIA.placed_at(3)) == warm(at(ONE, 1))


@pytest.mark.parametrize("other", [H100.whole, HALF])
def test_a_gpu_used_without_slices_loses_its_warm_slices(other: Profile) -> None:
    left = warm(at(ONE, 6))
    assert after_placing(left, other, other.placements[0]) == NO_WARM_SLICES
    assert after_release(NO_WARM_SLICES, other, other.placements[0]) == NO_WARM_SLICES
    assert remaining_warm_slices([at(other, 0)], [at(ONE, 6)]) == NO_WARM_SLICES
    assert remaining_warm_slices([], [at(other, 0), at(ONE, 6)]) == NO_WARM_SLICES


def test_the_latest_slice_of_each_placement_stays_warm() -> None:
    assert remaining_warm_slices([], [at(TWO, 0), at(ONE, 1), at(THREE, 4), at(FOUR, 0)]) == warm(
        at(TWO, 0), at(THREE, 4)
    )
    assert remaining_warm_slices([at(ONE, 5)], [at(THREE, 4), at(TWO, 0)]) == warm(at(TWO, 0))
    assert remaining_warm_slices([at(SEVEN, 0)], [at(TWO, 0)]) == NO_WARM_SLICES


@settings(max_examples=100, deadline=None)
@given(st.randoms(use_true_random=False))
def test_warm_slices_computed_from_history_match_the_step_by_step_result(chance: Random) -> None:
    gpu, left, ended = NaiveGpu(PROFILES), NO_WARM_SLICES, list[PlacedSlice]()
    for _ in range(40):
        if gpu.on and chance.random() < 0.5:
            number, start = chance.choice(sorted(gpu.on))
            gpu.on.remove((number, start))
            ended.insert(0, at(PROFILES[number], start))
            left = after_release(left, PROFILES[number], PROFILES[number].placed_at(start))
        else:
            number = chance.randrange(len(PROFILES))
            if not (starts := gpu.seats(number)):
                continue
            start = chance.choice(starts)
            gpu.on.add((number, start))
            left = after_placing(left, PROFILES[number], PROFILES[number].placed_at(start))
        assert remaining_warm_slices([at(PROFILES[n], start) for n, start in gpu.on], ended) == left
