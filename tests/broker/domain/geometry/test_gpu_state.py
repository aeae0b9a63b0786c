"""Occupied units of a GPU, and which placements remain legal."""

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.domain.geometry.gpu_models import GpuModelSpec
from broker.domain.geometry.gpu_state import (
    EMPTY_GPU,
    Geometry,
    GpuState,
    PlacedSlice,
    state_of,
)
from broker.domain.geometry.profiles import Placement, Profile, share_profiles
from broker.domain.lifecycle.states import Isolation
from tests.broker.domain.fleet import A30, H100, ONE, ONE_DOUBLE, ONE_ME, PRO_6000, SEVEN, THREE, TWO, plain
from tests.broker.domain.geometry.geometry_rules import geometry_faults

Seat = tuple[Profile, Placement]


def seats(profiles: tuple[Profile, ...]) -> list[Seat]:
    return [(profile, placement) for profile in profiles for placement in profile.placements]


@cache
def reachable(profiles: tuple[Profile, ...]) -> set[Geometry]:
    seen, todo = {Geometry()}, [Geometry()]
    while todo:
        gpu = todo.pop()
        for seat in seats(profiles):
            if gpu.fits(*seat) and (bigger := gpu.with_held(*seat)) not in seen:
                seen.add(bigger)
                todo.append(bigger)
    return seen


@pytest.mark.parametrize(
    ("model", "without", "masks", "geometries"),
    [(H100, None, 192, 723), (H100, ONE_DOUBLE, 144, 298), (A30, None, 16, 26), (PRO_6000, None, 16, 26)],
)
def test_a_gpu_reaches_the_known_number_of_masks_and_geometries(
    model: GpuModelSpec, without: Profile | None, masks: int, geometries: int
) -> None:
    found = reachable(tuple(p for p in plain(model) if p != without))
    assert len({gpu.state.mask for gpu in found}) == masks
    assert len(found) == geometries
    assert all(geometry_faults(gpu, grid=model.grid) == () for gpu in found)


def test_no_reachable_h100_state_uses_more_compute_than_the_gpu_has() -> None:
    assert max(gpu.state.compute for gpu in reachable(plain(H100))) == 7


@settings(max_examples=40)
@given(st.lists(st.sampled_from(seats(H100.profiles)), max_size=12))
def test_the_gpu_state_agrees_with_the_full_geometry(wanted: list[Seat]) -> None:
    gpu, state = Geometry(), EMPTY_GPU
    for seat in wanted:
        assert gpu.fits(*seat) == state.fits(*seat)
        if gpu.fits(*seat):
            gpu, state = gpu.with_held(*seat), state.with_held(*seat)
    assert gpu.state == state
    assert geometry_faults(gpu, grid=H100.grid) == ()


@settings(max_examples=40)
@given(st.lists(st.sampled_from(seats((*H100.profiles, H100.whole))), max_size=12), st.randoms())
def test_releasing_all_slices_in_any_order_leaves_an_empty_gpu(wanted: list[Seat], random: object) -> None:
    gpu, state = Geometry(), EMPTY_GPU
    for seat in wanted:
        if state.fits(*seat):
            gpu, state = gpu.with_held(*seat), state.with_held(*seat)
    held = sorted(gpu.held, key=lambda each: each.placement)
    random.shuffle(held)  # type: ignore[attr-defined]
    for each in held:
        gpu = gpu.without(each.profile, each.placement)
        state = state.without(each.profile, each.placement)
        assert gpu.state == state
    assert state == EMPTY_GPU
    assert state.empty


def test_placements_overlap_exactly_when_their_masks_do() -> None:
    runs = [Placement(start, size) for start in range(6) for size in range(1, 4)]
    for one in runs:
        for other in runs:
            assert one.overlaps(other) == bool(one.mask & other.mask)
    assert Placement(2, 3).mask == 0b11100


def test_the_media_engines_are_allocated_once() -> None:
    state = EMPTY_GPU.with_held(ONE_ME, ONE_ME.placed_at(0))
    assert not state.fits(ONE_ME, ONE_ME.placed_at(1))
    assert state.fits(ONE, ONE.placed_at(1))
    assert state.without(ONE_ME, ONE_ME.placed_at(0)) == EMPTY_GPU


def test_one_gpu_serves_one_kind_of_isolation_until_it_is_empty() -> None:
    _, quarter = share_profiles(grid=8, isolation=Isolation.SOFT)
    _, other = share_profiles(grid=8, isolation=Isolation.NONE)
    state = EMPTY_GPU.with_held(quarter, quarter.placed_at(0))
    assert state.fits(quarter, quarter.placed_at(2))
    assert not state.fits(ONE, ONE.placed_at(4))
    assert not state.fits(other, other.placed_at(4))
    assert state.without(quarter, quarter.placed_at(0)).fits(ONE, ONE.placed_at(4))


def test_occupying_a_used_unit_is_refused() -> None:
    state = EMPTY_GPU.with_held(TWO, TWO.placed_at(0))
    with pytest.raises(ValueError, match=r"1g.10gb does not fit at unit 1"):
        state.with_held(ONE, ONE.placed_at(1))
    with pytest.raises(ValueError, match=r"1g.10gb does not fit at unit 1 of 2g.20gb@0"):
        Geometry(frozenset({PlacedSlice(TWO.placed_at(0), TWO)})).with_held(ONE, ONE.placed_at(1))


@pytest.mark.parametrize(
    "state",
    [
        EMPTY_GPU,
        GpuState(mask=0b1, compute=1, isolation=Isolation.SOFT),
        GpuState(mask=0b1, compute=0, isolation=Isolation.HARDWARE),
        GpuState(mask=0b1, compute=1, isolation=Isolation.HARDWARE),
    ],
)
def test_releasing_a_slice_that_is_not_held_is_refused(state: GpuState) -> None:
    with pytest.raises(ValueError, match="is not held"):
        state.without(ONE_ME, ONE_ME.placed_at(0))
    with pytest.raises(ValueError, match=r"1g.10gb\+me at unit 0 is not part of an unpartitioned GPU"):
        Geometry().without(ONE_ME, ONE_ME.placed_at(0))


@pytest.mark.parametrize(
    "state", [GpuState(0b1, False, 1, Isolation.SOFT), GpuState(0b10, False, 1, Isolation.HARDWARE)]
)
def test_releasing_a_slice_with_other_units_or_isolation_is_refused(state: GpuState) -> None:
    with pytest.raises(ValueError, match="is not held"):
        state.without(ONE, ONE.placed_at(0))


def test_a_unit_used_twice_is_a_geometry_fault() -> None:
    twice = Geometry(frozenset({PlacedSlice(ONE.placed_at(4), ONE), PlacedSlice(THREE.placed_at(4), THREE)}))
    assert geometry_faults(twice, grid=8) == ("unit 4 is taken 2 times",)


def test_releasing_a_slice_keeps_the_media_engines_of_another() -> None:
    state = state_of([PlacedSlice(ONE_ME.placed_at(0), ONE_ME), PlacedSlice(THREE.placed_at(4), THREE)])
    after = state.without(THREE, THREE.placed_at(4))
    assert after == state_of([PlacedSlice(ONE_ME.placed_at(0), ONE_ME)])
    assert after.media


def test_a_geometry_refuses_more_instances_than_its_profile_allows() -> None:
    rare = Profile("1g.rare", 1, 1, ONE.placements, 1, False, Isolation.HARDWARE)
    gpu = Geometry().with_held(rare, rare.placed_at(0))
    assert gpu.state.fits(rare, rare.placed_at(1))
    assert not gpu.fits(rare, rare.placed_at(1))


def test_all_faults_of_an_invalid_geometry_are_listed() -> None:
    rare = Profile("1g.rare", 1, 1, ONE.placements, 1, False, Isolation.HARDWARE)
    wrong = Geometry(
        frozenset(
            {
                PlacedSlice(Placement(1, 4), THREE),
                PlacedSlice(ONE.placed_at(1), ONE),
                PlacedSlice(Placement(7, 2), TWO),
                PlacedSlice(rare.placed_at(5), rare),
                PlacedSlice(rare.placed_at(6), rare),
                PlacedSlice(ONE_ME.placed_at(0), ONE_ME),
                PlacedSlice(ONE_ME.placed_at(6), ONE_ME),
                PlacedSlice(Placement(0, 8), H100.whole),
            }
        )
    )
    found = geometry_faults(wrong, grid=8)
    assert "3g.40gb cannot start at unit 1" in found
    assert "2g.20gb@7 ends beyond the 8 units of the GPU" in found
    assert "unit 1 is taken 3 times" in found
    assert "2 of 1g.rare, at most 1 may stand on one GPU" in found
    assert "the media engines are given out twice" in found
    assert "one GPU serves two kinds of isolation" in found
    assert geometry_faults(Geometry(frozenset({PlacedSlice(SEVEN.placed_at(0), SEVEN)})), grid=8) == ()
