"""Placements restricted to the profiles that a GPU publishes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.domain.geometry.gpu_state import EMPTY_GPU, Geometry, PlacedSlice, state_of
from broker.domain.geometry.profiles import Placement
from broker.domain.geometry.published_profiles import (
    PublishedProfiles,
    available_placements,
    dedicated_profiles,
    missing_from_model,
    parse_published_profiles,
    published_profiles,
)
from broker.domain.geometry.slice_packing import max_instances_that_fit
from broker.domain.placement.costs.state_tables import NO_STATE
from broker.domain.placement.gpu_kinds import gpu_kind_of
from broker.domain.placement.pool import GpuView, PoolIndex
from broker.domain.placement.slots import Slot
from tests.broker.domain.fleet import H100, ONE, SEVEN, THREE, TWO

EVERY = {profile.name: [place.start for place in profile.placements] for profile in dedicated_profiles(H100)}
ONES = published_profiles({ONE.name: [0, 1, 2, 3], SEVEN.name: [0]})
PLACES = sorted((name, start) for name, its in EVERY.items() for start in its)


def test_a_gpu_that_publishes_every_profile_of_its_model_is_not_restricted() -> None:
    assert missing_from_model(H100, EVERY) is None
    assert (
        missing_from_model(H100, {**EVERY, "9g.90gb": [0]}) is None
    )  # a profile that the file does not know is not sold
    assert missing_from_model(H100, {**EVERY, ONE.name: [0]}) is not None
    assert missing_from_model(H100, {ONE.name: {3, 1, 77}}) == published_profiles({ONE.name: [1, 3]})


def test_published_profiles_round_trip_through_a_row() -> None:
    assert ONES.starts() == {ONE.name: [0, 1, 2, 3], SEVEN.name: [0]}
    assert parse_published_profiles('{"1g.10gb": [3, 1, 0, 2], "7g.80gb": [0]}') == ONES
    assert published_profiles({}) == PublishedProfiles(())
    assert PublishedProfiles(()).starts() == {}


def test_the_gpu_layout_determines_the_placements_of_a_profile() -> None:
    assert available_placements(THREE, None) == THREE.placements
    assert available_placements(ONE, ONES) == ONE.placements[:4]
    assert available_placements(THREE, ONES) == ()
    assert available_placements(THREE, Geometry(frozenset({PlacedSlice(Placement(4, 4), THREE)}))) == (Placement(4, 4),)


def test_an_unpublished_placement_is_never_chosen() -> None:
    pool = PoolIndex(H100, [GpuView("a", "n", EMPTY_GPU, ONES), GpuView("b", "n")])
    assert pool.how_many_fit(THREE) == 2
    seats = [pool.find_cheapest_slot(THREE)]
    assert seats == [Slot("b", Placement(0, 4))] or seats == [Slot("b", Placement(4, 4))]
    pool.remove("b")
    assert pool.find_cheapest_slot(THREE) is None
    assert pool.how_many_fit(ONE) == 4
    for _ in range(4):
        seat = pool.find_cheapest_slot(ONE)
        assert seat
        assert seat.placement.start < 4
        pool.hold(seat, ONE)
    assert pool.find_cheapest_slot(ONE) is None


def test_a_slice_that_is_no_longer_published_occupies_only_its_own_units() -> None:
    held = state_of([PlacedSlice(Placement(4, 4), THREE)])
    kind = gpu_kind_of(H100, ONES)
    assert kind.max_instances[kind.profile_numbers[ONE.name, ONE.isolation]][kind.state_of(held)] == 4


@settings(max_examples=150)
@given(st.sets(st.sampled_from(PLACES), max_size=12), st.lists(st.sampled_from(PLACES), max_size=6))
@pytest.mark.deep
def test_occupied_or_unpublished_placements_are_never_free(
    found: set[tuple[str, int]], lies: list[tuple[str, int]]
) -> None:
    """The existing slices were created before the GPU stopped publishing them."""
    cut, gpu = PublishedProfiles(tuple(sorted(found))), EMPTY_GPU
    by_name = {profile.name: profile for profile in dedicated_profiles(H100)}
    for name, start in lies:
        if gpu.fits(by_name[name], by_name[name].placed_at(start)):
            gpu = gpu.with_held(by_name[name], by_name[name].placed_at(start))
    kind = gpu_kind_of(H100, cut)
    state = kind.state_of(gpu)
    for number, profile in enumerate(kind.table.profiles):
        assert kind.max_instances[number][state] == max_instances_that_fit(profile, gpu, cut)
        for move in kind.table.options[number][state] if state != NO_STATE else ():
            assert gpu.fits(profile, profile.placed_at(move.start))
            assert (profile.name, move.start) in found
    if gpu.empty:
        assert {name for name, _ in found} == {profile.name for profile in kind.table.profiles}
        assert max_instances_that_fit(TWO, gpu, cut) == len(
            [1 for name, start in found if name == TWO.name]
        )  # its placements lie side by side
