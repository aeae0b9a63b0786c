"""State tables, compared with a naive model of each GPU."""

from collections.abc import Iterable

import pytest

from broker.domain.geometry.gpu_models import GpuModelSpec
from broker.domain.geometry.profiles import Placement, Profile, share_profiles
from broker.domain.lifecycle.states import Isolation
from broker.domain.placement.costs.state_tables import EMPTY, NO_STATE, build_state_table
from tests.broker.domain.fleet import A30, H100, MODELS, ONE_DOUBLE, ONE_ME, PRO_6000, plain
from tests.broker.domain.placement.naive_pool import NaiveGpu, Slice, all_layouts, all_profiles


def shape(model: GpuModelSpec) -> object:
    """What a table is made from: models of one shape have one table."""
    return [(p.compute, p.memory, p.placements, p.media) for p in model.profiles if p.placements], model.grid


SHAPES = [m for n, m in enumerate(MODELS) if shape(m) not in [shape(other) for other in MODELS[:n]]]


@pytest.mark.parametrize(
    ("model", "without", "states"),
    [(H100, None, 192), (H100, ONE_DOUBLE, 144), (A30, None, 16), (PRO_6000, None, 16)],
)
def test_a_gpu_reaches_the_known_number_of_masks(model: GpuModelSpec, without: Profile | None, states: int) -> None:
    table = build_state_table([p for p in plain(model) if p != without], model.grid)
    assert len(table.states) == states
    assert table.states[EMPTY] == 0


def test_every_model_has_a_tested_shape() -> None:
    assert {m.name for m in SHAPES} >= {"A30-24GB", "A100-40GB", "RTX-PRO-6000-Server-96GB"}
    assert all(shape(m) in [shape(each) for each in SHAPES] for m in MODELS)


@pytest.mark.parametrize("counted", [False, True], ids=["by occupied units", "and by slice count"])
@pytest.mark.parametrize("model", SHAPES, ids=lambda m: m.name)
def test_every_state_and_placement_matches_the_sets_of_slices(model: GpuModelSpec, counted: bool) -> None:
    profiles = all_profiles(model)
    table = build_state_table(profiles, model.grid, counted=counted)
    tried: dict[tuple[frozenset[int], bool, Isolation | None, int], int] = {}

    def key(slices: Iterable[Slice]) -> tuple[frozenset[int], bool, Isolation | None, int]:
        on = set(slices)
        return *NaiveGpu(profiles, on).key(), len(on) if counted else 0

    for slices in all_layouts(profiles):
        state = EMPTY
        for profile, start in slices:
            state = table.state_with[profile][start][state]
        assert tried.setdefault(key(slices), state) == state
        assert table.slice_count(state) == (len(slices) if counted else 0)
    for slices in all_layouts(profiles):
        for profile, start in slices:
            after = tried[key(slices - {(profile, start)})]
            assert table.state_after_removing(tried[key(slices)], profile, start) == after
    assert sorted(tried.values()) == list(range(len(table.states)))
    for (units, media, isolation, _), state in tried.items():
        assert table.free_units(state) == model.grid - len(units)
        for p, profile in enumerate(profiles):
            fitting = [
                place.start
                for place in profile.placements
                if units.isdisjoint(range(place.start, place.end))
                and isolation in (None, profile.isolation)
                and not (media and profile.media)
            ]
            assert [move.start for move in table.options[p][state]] == fitting
            assert all(table.state_with[p][move.start][state] == move.next_state for move in table.options[p][state])


def test_a_gpu_serves_one_isolation_until_it_is_empty() -> None:
    soft = share_profiles(grid=8, isolation=Isolation.SOFT)
    none = share_profiles(grid=8, isolation=Isolation.NONE)
    table = build_state_table((*soft, *none), 8)
    state = table.state_with[1][0][EMPTY]  # a soft quarter
    assert not table.options[3][state]  # a quarter of the other kind has no place beside it
    assert table.options[1][state]
    assert table.state_without[3][0][state] == NO_STATE
    both = table.state_with[1][2][state]
    assert table.state_after_removing(both, 1, 0) == table.state_with[1][2][EMPTY]
    assert table.state_after_removing(state, 1, 0) == EMPTY


def test_a_slice_that_is_not_on_a_gpu_cannot_be_removed() -> None:
    table = build_state_table(plain(H100), 8)
    with pytest.raises(KeyError, match=r"1g.10gb at unit 3 is not on a GPU in state 0"):
        table.state_after_removing(EMPTY, 0, 3)


def test_the_media_engines_are_a_bit_above_the_units() -> None:
    table = build_state_table((ONE_ME,), 8)
    assert table.slice_bits(0, 2) == table.media_bit | 0b100
    assert table.free_units(table.state_with[0][2][EMPTY]) == 7
    assert len(table.states) == 8


@pytest.mark.parametrize(
    ("starts", "size", "found"),
    [
        ((0, 0), 2, r"2g\.odd starts twice at the same unit: \[0, 0\]"),
        ((7,), 2, r"2g\.odd of 2 units cannot occupy units 7 to 8 of a GPU of 8"),
        ((-1,), 2, r"cannot occupy units -1 to 0"),
        ((0,), 3, r"2g\.odd of 2 units cannot occupy units 0 to 2 of a GPU"),
    ],
)
def test_invalid_placements_of_a_profile_are_refused(starts: tuple[int, ...], size: int, found: str) -> None:
    places = tuple(Placement(start, size) for start in starts)
    with pytest.raises(ValueError, match=found):
        build_state_table([Profile("2g.odd", 2, 2, places, 2, False, Isolation.HARDWARE)], 8)
