"""The fleet model of a plan: placement, removal and evictions."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.domain.defragmentation.fleet import LiveSlice
from broker.domain.defragmentation.gpu_shapes import GpuShapes
from broker.domain.placement.costs.state_tables import build_state_table
from tests.broker.domain.defragmentation.gpus import P1, P3, P4, P7, TABLE, draw, fleet
from tests.broker.domain.fleet import H100, ONE, ONE_ME


def test_a_slice_is_placed_at_the_cheapest_slot_and_recorded() -> None:
    gpus = fleet("", "3@0")
    assert gpus.place_cheapest(LiveSlice("new", P3, 0, 4)) == (1, 4)
    assert (gpus.gpu_of["new"], gpus.start_of["new"], gpus.slices[1][4].allocation) == (1, 4, "new")


def test_no_empty_gpu_is_used_if_the_caller_forbids_it() -> None:
    gpus = fleet("", "7@0")
    assert gpus.find_cheapest_slot(P1, use_empty_gpus=False) is None
    seat = gpus.find_cheapest_slot(P1)
    assert seat is not None
    assert seat[0] == 0


def test_an_allocation_cannot_be_held_twice() -> None:
    gpus = fleet("1@0", "")
    with pytest.raises(KeyError, match=r"allocation 0\.0 is already on GPU 0"):
        gpus.place_on(1, LiveSlice("0.0", P1, 0, 1))
    assert draw(gpus) == ["1@0", ""]


def test_holding_an_occupied_placement_changes_nothing() -> None:
    gpus = fleet("7@0")
    with pytest.raises(KeyError):
        gpus.place_on(0, LiveSlice("new", P1, 3, 1))
    assert "new" not in gpus.gpu_of
    assert draw(gpus) == ["7@0"]


def test_a_lifted_allocation_is_removed_completely() -> None:
    gpus = fleet("1@0 3@4", "")
    assert gpus.remove("0.4") == LiveSlice("0.4", P3, 4, 4)
    assert draw(gpus) == ["1@0", ""]
    with pytest.raises(KeyError):
        gpus.remove("0.4")


@settings(max_examples=15)
@given(st.data())
def test_gpus_are_grouped_by_their_shape(data: st.DataObject) -> None:
    gpus = fleet("", "", "", "")
    for number in range(data.draw(st.integers(1, 12))):
        profile, cost = data.draw(st.integers(0, P7)), data.draw(st.sampled_from([None, 1]))
        gpus.place_cheapest(LiveSlice(str(number), profile, 0, cost))
    for allocation in data.draw(st.lists(st.sampled_from(sorted(gpus.gpu_of) or [""]), unique=True)):
        if allocation:
            gpus.remove(allocation)
    stand = {gpu: shape for shape, those in gpus.shapes.gpus.items() for gpu in those}
    values: dict[tuple[tuple[int, int, bool], ...], int] = {}
    for gpu, on in enumerate(gpus.slices):
        lie = tuple(sorted((start, piece.profile, piece.cost is not None) for start, piece in on.items()))
        assert values.setdefault(lie, stand[gpu]) == stand[gpu]
    assert len(set(values.values())) == len(values)


def test_the_cheapest_eviction_comes_first() -> None:
    gpus = fleet("2@0 2@2 3@4", "1@3 3@4", "7@0")
    ways = list(gpus.shapes.cheapest_evictions(P3, 2))
    assert [(gpu, way.starts) for way, gpu in ways] == [(1, (3,)), (0, (0, 2))]


def test_evictions_of_a_shape_are_found_again_when_it_recurs() -> None:
    gpus = fleet("1@3 3@4", "7@0")
    assert [gpu for _, gpu in gpus.shapes.cheapest_evictions(P3, 2)] == [0]
    gpus.remove("0.3")
    gpus.place_cheapest(LiveSlice("three", P3, 0, 4))
    assert list(gpus.shapes.cheapest_evictions(P3, 2)) == []
    gpus.remove("three")
    gpus.place_on(0, LiveSlice("one", P1, 3, 1))
    assert [way.starts for way, _ in gpus.shapes.cheapest_evictions(P3, 2)] == [(3,)]


def test_immovable_slices_are_never_evicted() -> None:
    gpus = fleet("1@3! 3@4!", "1@3 3@4", "2@0! 1@2 3@4!")
    assert [(gpu, way.starts) for way, gpu in gpus.shapes.cheapest_evictions(P3, 2)] == [(1, (3,))]


def test_a_slice_that_fits_at_every_eviction_target_evicts_nothing() -> None:
    gpus = fleet("3@0 2@4 1@6", "7@0")
    assert list(gpus.shapes.cheapest_evictions(P1, 2)) == []
    assert [way.starts for way, _ in gpus.shapes.cheapest_evictions(P4, 2)] == [(0,)]  # a 3g may also lie to the right


def test_a_plain_slice_is_evicted_for_a_media_engine_slice() -> None:
    table = build_state_table((ONE, ONE_ME), 8)
    shapes = GpuShapes(table, 1)
    shapes.add_slice(0, 1, 0, relocatable=True)
    assert [way.starts for way, _ in shapes.cheapest_evictions(0, 1)] == []
    for start in range(1, 7):
        shapes.add_slice(0, 0, start, relocatable=True)
    assert list(shapes.cheapest_evictions(0, 1)) == []
    shapes.remove_slice(0, 1, 0, relocatable=True)
    shapes.add_slice(0, 0, 0, relocatable=True)
    assert [way.starts for way, _ in shapes.cheapest_evictions(1, 1)] == [(start,) for start in range(7)][:1]


def test_a_gpu_leased_whole_is_not_evicted_for_a_slice() -> None:
    table = build_state_table((ONE, H100.whole), 8)
    shapes = GpuShapes(table, 1)
    shapes.add_slice(0, 1, 0, relocatable=True)
    assert list(shapes.cheapest_evictions(0, 1)) == []


def test_an_empty_index_has_no_evictions() -> None:
    assert list(GpuShapes(TABLE, 0).cheapest_evictions(P1, 2)) == []
