"""The order of relocations, and cycles that an empty GPU breaks."""

import pytest

from broker.domain.defragmentation.relocation_draft import SliceRelocation, apply_relocation
from broker.domain.defragmentation.relocation_order import order_relocations
from broker.domain.geometry.profiles import share_profiles
from broker.domain.lifecycle.states import Isolation
from broker.domain.placement.costs.state_tables import build_state_table
from tests.broker.domain.defragmentation.gpus import P2, P3, P4, P7, TABLE, draw, fleet
from tests.broker.domain.fleet import ONE, ONE_ME, SEVEN

# Each of the two halves of GPU 0 is where the other one should be.
LEFT = SliceRelocation("0.0", P3, 0, 0, 0, 4, cost=4, gain=1)
RIGHT = SliceRelocation("0.4", P3, 0, 4, 0, 0, cost=4, gain=1)


def test_a_relocation_that_frees_space_for_another_comes_first() -> None:
    away = SliceRelocation("0.4", P3, 0, 4, 1, 0, cost=4)
    assert order_relocations(TABLE, [LEFT, away]) == [away, LEFT]


def test_a_cycle_is_broken_through_an_empty_gpu() -> None:
    gpus = fleet("3@0 3@4", "")
    steps = order_relocations(TABLE, [LEFT, RIGHT], spare_gpu=1)
    assert steps is not None
    assert [(step.allocation, step.to_gpu, step.to_start) for step in steps] == [
        ("0.0", 1, 0),
        ("0.4", 0, 0),
        ("0.0", 0, 4),
    ]
    for step in steps:
        apply_relocation(gpus, step)
    assert draw(gpus) == ["3@0 3@4", ""]
    assert gpus.start_of == {"0.0": 4, "0.4": 0}
    assert sum(step.gain for step in steps) == LEFT.gain + RIGHT.gain


def test_a_cycle_without_an_empty_gpu_has_no_order() -> None:
    assert order_relocations(TABLE, [LEFT, RIGHT]) is None


def test_a_slice_outside_the_cycle_is_relocated_in_one_step() -> None:
    gpus = fleet("4@0", "2@0", "2@0", "")
    circle = [SliceRelocation("0.0", P4, 0, 0, 1, 0, cost=4), SliceRelocation("1.0", P2, 1, 0, 0, 0, cost=2)]
    waits = SliceRelocation("2.0", P2, 2, 0, 0, 2, cost=2)
    steps = order_relocations(TABLE, [waits, *circle], spare_gpu=3)
    assert steps is not None
    assert len(steps) == 4
    assert waits in steps
    for step in steps:
        apply_relocation(gpus, step)
    assert draw(gpus) == ["2@0 2@2", "4@0", "", ""]


def test_the_empty_gpu_breaks_one_cycle_after_another() -> None:
    whole = [SliceRelocation(str(gpu), P7, gpu, 0, (gpu + 1) % 2, 0, cost=8) for gpu in range(2)]
    more = [SliceRelocation(str(gpu), P7, gpu, 0, 2 + (gpu + 1) % 2, 0, cost=8) for gpu in (2, 3)]
    steps = order_relocations(TABLE, whole + more, spare_gpu=9)
    assert steps is not None
    assert [step.to_gpu for step in steps].count(9) == 2


def test_a_step_with_a_wrong_source_is_refused() -> None:
    gpus = fleet("3@4", "")
    with pytest.raises(KeyError, match="create a new plan"):
        apply_relocation(gpus, LEFT)
    with pytest.raises(KeyError, match="create a new plan"):
        apply_relocation(gpus, SliceRelocation("0.4", P3, 0, 4, 0, 4, cost=4))
    assert draw(gpus) == ["3@4", ""]


def test_a_step_to_an_occupied_placement_is_refused() -> None:
    gpus = fleet("4@0", "1@1")
    with pytest.raises(KeyError, match=r"unit 0 of GPU 1 is in use"):
        apply_relocation(gpus, SliceRelocation("0.0", P4, 0, 0, 1, 0, cost=4))
    assert draw(gpus) == ["4@0", "1@1"]


def test_a_relocation_waits_until_the_media_engines_of_its_target_are_free() -> None:
    table = build_state_table((ONE, ONE_ME), 8)
    comes, goes = SliceRelocation("0.0", 1, 0, 0, 1, 0, cost=1), SliceRelocation("1.3", 1, 1, 3, 2, 0, cost=1)
    assert order_relocations(table, [comes, goes]) == [goes, comes]


def test_independent_share_relocations_keep_their_order() -> None:
    table = build_state_table((SEVEN, *share_profiles(grid=8, isolation=Isolation.SOFT)), 8)
    steps = [SliceRelocation("0.0", 1, 0, 0, 1, 4, cost=4), SliceRelocation("1.0", 1, 1, 0, 2, 0, cost=4)]
    assert order_relocations(table, steps) == steps
