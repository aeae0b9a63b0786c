"""GPU kinds: the states that GPUs of one model and layout share."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.domain.geometry.gpu_state import EMPTY_GPU, Geometry, GpuState, PlacedSlice, state_of
from broker.domain.geometry.profiles import Placement, Profile, share_profiles
from broker.domain.geometry.slice_packing import all_placements, max_instances_that_fit
from broker.domain.lifecycle.states import Isolation
from broker.domain.placement.costs.state_tables import EMPTY as UNTOUCHED
from broker.domain.placement.costs.state_tables import NO_STATE
from broker.domain.placement.gpu_kinds import all_profiles, check_profile_of_model, gpu_kind_of
from tests.broker.domain.fleet import A30, FOUR, H100, ONE, ONE_ME, PRO_5000, SEVEN, THREE, TWO

UNCUT = gpu_kind_of(H100, None)
SEATS = all_placements(all_profiles(H100))


def at(profile: Profile, start: int) -> PlacedSlice:
    return PlacedSlice(profile.placed_at(start), profile)


@settings(max_examples=80)
@given(st.lists(st.sampled_from(SEATS), max_size=10))
def test_the_state_of_a_gpu_kind_determines_exactly_what_fits(wanted: list[PlacedSlice]) -> None:
    gpu, state = EMPTY_GPU, UNTOUCHED
    for held in wanted:
        number = UNCUT.profile_numbers[held.profile.name, held.profile.isolation]
        after = UNCUT.table.state_with[number][held.placement.start][state]
        assert (after != NO_STATE) == gpu.fits(held.profile, held.placement)
        if after != NO_STATE:
            gpu, state = gpu.with_held(held.profile, held.placement), after
    assert UNCUT.state_of(gpu) == state
    for number, profile in enumerate(UNCUT.table.profiles):
        assert UNCUT.max_instances[number][state] == max_instances_that_fit(profile, gpu, None)
        assert (state in UNCUT.lowest_cost[number]) == bool(UNCUT.max_instances[number][state])


def test_a_gpu_without_a_count_is_assumed_to_have_the_fewest_slices() -> None:
    found = state_of([at(TWO, 0), at(TWO, 2)])
    untold = GpuState(found.mask, found.media, found.compute, found.isolation)
    assert untold == found
    assert UNCUT.state_of(untold) == UNCUT.state_of(state_of([at(FOUR, 0)]))
    assert UNCUT.table.slice_count(UNCUT.state_of(found)) == 2


def test_gpus_of_one_model_and_layout_share_one_kind() -> None:
    layout = Geometry(frozenset({at(THREE, 4)}))
    assert gpu_kind_of(H100, None) is UNCUT
    assert gpu_kind_of(H100, Geometry(frozenset({at(THREE, 4)}))) is gpu_kind_of(H100, layout)
    assert gpu_kind_of(H100, layout) is not UNCUT
    # One that is never cut, and whose grid is notional, is a GPU as well.
    names = [profile.name for profile in gpu_kind_of(PRO_5000, None).table.profiles]
    assert names == ["whole-gpu", "half", "quarter", "half", "quarter"]


def test_slices_of_an_earlier_layout_occupy_the_slots_they_overlap() -> None:
    kind = gpu_kind_of(H100, Geometry(frozenset({at(FOUR, 0), at(ONE, 4), at(ONE, 5), at(ONE, 6)})))
    two = state_of([at(TWO, 4)])
    assert kind.state_of(two) == kind.state_of(state_of([at(ONE, 4), at(ONE, 5)]))
    assert kind.max_instances[kind.profile_numbers["1g.10gb", Isolation.HARDWARE]][kind.state_of(two)] == 1
    alone = gpu_kind_of(H100, Geometry(frozenset({at(THREE, 4)})))
    assert alone.state_of(state_of([at(ONE_ME, 0)])) == UNTOUCHED


def test_a_gpu_whose_slices_contradict_its_layout_has_no_state() -> None:
    (half, _) = share_profiles(grid=8, isolation=Isolation.SOFT)
    fixed = gpu_kind_of(H100, Geometry(frozenset({at(SEVEN, 0)})))
    assert fixed.state_of(state_of([at(half, 0)])) == NO_STATE
    runs = (Placement(0, 2), Placement(1, 2))
    crossing = Profile("2g.odd", 2, 2, runs, 1, False, Isolation.HARDWARE)
    odd = gpu_kind_of(H100, Geometry(frozenset(PlacedSlice(run, crossing) for run in runs)))
    assert odd.state_of(GpuState(0b10, False, 1, Isolation.HARDWARE)) == NO_STATE
    assert odd.max_instances[0][NO_STATE] == 0
    assert NO_STATE not in odd.lowest_cost[0]


def test_media_engines_in_use_count_where_the_layout_sells_them() -> None:
    kind = gpu_kind_of(H100, Geometry(frozenset({at(ONE_ME, 0), at(ONE, 1), at(ONE_ME, 2)})))
    media = kind.profile_numbers[ONE_ME.name, Isolation.HARDWARE]
    held = state_of([at(ONE_ME, 2)])
    assert kind.max_instances[media][UNTOUCHED] == 1
    assert kind.max_instances[media][kind.state_of(held)] == 0


def test_forecast_prices_replace_prices_by_memory() -> None:
    dear = gpu_kind_of(H100, None, ((("3g.40gb", Isolation.HARDWARE), 10**6),))
    number = dear.profile_numbers["1g.10gb", Isolation.HARDWARE]
    usual = UNCUT.ranks.best_option[number][UNTOUCHED].start
    beside_four = dear.state_of(state_of([at(FOUR, 0)]))
    assert usual == 0
    # The right half is worth a 3g now, and a 1g spoils it: that is the loss.
    assert dear.lowest_cost[number][beside_four].value_loss > 900_000
    assert UNCUT.lowest_cost[number][beside_four].value_loss < 10_000


def test_a_profile_of_another_model_is_refused_unlike_one_without_placements() -> None:
    check_profile_of_model(PRO_5000, PRO_5000.profiles[0])
    check_profile_of_model(H100, H100.whole)
    with pytest.raises(ValueError, match=r"A30-24GB has no hardware profile '7g\.80gb'"):
        check_profile_of_model(A30, SEVEN)
