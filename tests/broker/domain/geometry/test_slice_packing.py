"""Fragmented units and free capacity of a partly used GPU."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.domain.geometry.gpu_models import GpuModelSpec
from broker.domain.geometry.gpu_state import EMPTY_GPU, Geometry, GpuState, PlacedSlice, state_of
from broker.domain.geometry.profiles import Profile, share_profiles
from broker.domain.geometry.slice_packing import (
    all_placements,
    fragmented_mask,
    fragmented_units,
    max_instances_that_fit,
)
from broker.domain.lifecycle.states import Isolation
from tests.broker.domain.fleet import (
    A30,
    FOUR,
    H100,
    ONE,
    ONE_DOUBLE,
    ONE_ME,
    PRO_5000,
    PRO_6000,
    SEVEN,
    THREE,
    TWO,
)


@st.composite
def states(draw: st.DrawFn, model: GpuModelSpec) -> GpuState:
    state = EMPTY_GPU
    for held in draw(st.lists(st.sampled_from(all_placements(model.profiles)), max_size=6)):
        if state.fits(held.profile, held.placement):
            state = state.with_held(held.profile, held.placement)
    return state


def packings(state: GpuState, offered: tuple[Profile, ...]) -> Iterator[tuple[Profile, ...]]:
    """Yield all ways to continue filling a GPU, by brute force."""
    yield ()
    for profile in offered:
        for placement in profile.placements:
            if state.fits(profile, placement):
                for rest in packings(state.with_held(profile, placement), offered):
                    yield (profile, *rest)


@settings(max_examples=40)
@given(states(A30), st.sets(st.sampled_from((*A30.profiles, A30.whole)), max_size=4))
def test_fragmented_units_are_those_left_by_the_best_packing(state: GpuState, offered: set[Profile]) -> None:
    choice = tuple(sorted(offered, key=lambda p: p.name))
    most = max(sum(p.memory for p in packed) for packed in packings(state, choice))
    assert fragmented_units(state, choice, grid=4) == 4 - state.mask.bit_count() - most


@settings(max_examples=40)
@given(states(A30), st.sampled_from((*A30.profiles, A30.whole)))
def test_the_maximum_of_instances_is_the_longest_of_all_packings(state: GpuState, profile: Profile) -> None:
    assert max_instances_that_fit(profile, state, None) == max(len(packed) for packed in packings(state, (profile,)))


@pytest.mark.parametrize("model", [H100, A30, PRO_6000])
def test_an_empty_gpu_is_never_fragmented_while_it_is_sold_whole(model: GpuModelSpec) -> None:
    assert fragmented_units(EMPTY_GPU, (model.whole,), grid=model.grid) == 0
    assert fragmented_units(EMPTY_GPU, model.profiles_with(Isolation.HARDWARE), grid=model.grid) == 0


def test_the_eighth_unit_beside_seven_small_slices_is_fragmented() -> None:
    state = state_of(PlacedSlice(ONE.placed_at(start), ONE) for start in range(7))
    assert fragmented_units(state, H100.profiles, grid=8) == 1


@pytest.mark.parametrize(
    ("held", "offered", "lost"),
    [
        (PlacedSlice(ONE.placed_at(0), ONE), (TWO,), 3),  # unit 1 and the pair no 2g may start on
        (PlacedSlice(ONE.placed_at(0), ONE), (SEVEN,), 7),
        (PlacedSlice(THREE.placed_at(0), THREE), (FOUR,), 4),
        (PlacedSlice(THREE.placed_at(4), THREE), (FOUR,), 0),
        (PlacedSlice(TWO.placed_at(0), TWO), (H100.whole,), 6),
        (PlacedSlice(TWO.placed_at(0), TWO), (), 6),
        (PlacedSlice(ONE_ME.placed_at(0), ONE_ME), (ONE_ME,), 7),
    ],
)
def test_fragmented_units_depend_on_the_profiles_offered(
    held: PlacedSlice, offered: tuple[Profile, ...], lost: int
) -> None:
    assert fragmented_units(state_of([held]), offered, grid=8) == lost


@settings(max_examples=40)
@given(states(A30), st.sets(st.sampled_from((*A30.profiles, A30.whole)), max_size=4))
def test_all_unfragmented_free_units_can_be_filled(state: GpuState, offered: set[Profile]) -> None:
    choice = tuple(sorted(offered, key=lambda p: p.name))
    lost = fragmented_mask(state, choice, grid=4)
    room = ~(state.mask | lost) & 0b1111
    assert lost & state.mask == 0
    assert room in {0, *filled(state, choice, state.mask | lost)}


def filled(state: GpuState, offered: tuple[Profile, ...], closed: int) -> Iterator[int]:
    """Every set of units that slices can fill without touching the closed ones."""
    yield 0
    for profile in offered:
        for place in profile.placements:
            if not place.mask & closed and state.fits(profile, place):
                for rest in filled(state.with_held(profile, place), offered, closed):
                    yield place.mask | rest


def test_the_fragmented_unit_is_in_the_mask() -> None:
    state = state_of(PlacedSlice(ONE.placed_at(start), ONE) for start in range(7))
    assert fragmented_mask(state, H100.profiles, grid=8) == 0b1000_0000


def test_a_fixed_layout_gpu_sells_only_offered_slices_of_its_layout() -> None:
    layout = Geometry(
        frozenset({PlacedSlice(THREE.placed_at(4), THREE), PlacedSlice(ONE_DOUBLE.placed_at(0), ONE_DOUBLE)})
    )
    assert fragmented_mask(EMPTY_GPU, (THREE, ONE), grid=8, layout=layout) == 0b0000_1111
    assert fragmented_mask(state_of(layout.held), (THREE,), grid=8, layout=layout) == 0b1100


def test_an_empty_gpu_is_fragmented_by_its_best_packing_only() -> None:
    assert fragmented_units(EMPTY_GPU, (ONE,), grid=8) == 1
    assert fragmented_units(EMPTY_GPU, (ONE, H100.whole), grid=8) == 0


def test_a_media_profile_alone_leaves_the_other_units_fragmented() -> None:
    assert fragmented_units(EMPTY_GPU, (ONE_ME,), grid=8) == 7
    assert fragmented_units(EMPTY_GPU, (ONE_ME, TWO), grid=8) == 1


def test_a_full_gpu_has_no_fragmented_units() -> None:
    assert fragmented_units(state_of([PlacedSlice(SEVEN.placed_at(0), SEVEN)]), H100.profiles, grid=8) == 0


def test_units_of_a_shared_gpu_count_only_as_shares() -> None:
    half, quarter = share_profiles(grid=8, isolation=Isolation.SOFT)
    state = state_of([PlacedSlice(quarter.placed_at(2), quarter)])
    assert fragmented_units(state, (half, ONE), grid=8) == 2
    assert fragmented_units(state, (half, quarter, ONE), grid=8) == 0
    assert max_instances_that_fit(ONE, state, None) == 0


def test_a_fixed_layout_gpu_fits_only_its_own_free_slices() -> None:
    layout = Geometry(
        frozenset({PlacedSlice(THREE.placed_at(4), THREE), PlacedSlice(ONE_DOUBLE.placed_at(0), ONE_DOUBLE)})
    )
    assert max_instances_that_fit(THREE, EMPTY_GPU, layout) == 1
    assert max_instances_that_fit(ONE, EMPTY_GPU, layout) == 0
    assert max_instances_that_fit(THREE, state_of(layout.held), layout) == 0


def test_a_gpu_without_mig_fits_no_slices_but_can_be_sold_whole() -> None:
    assert max_instances_that_fit(PRO_5000.profiles[0], EMPTY_GPU, None) == 0
    assert max_instances_that_fit(PRO_5000.whole, EMPTY_GPU, None) == 1
