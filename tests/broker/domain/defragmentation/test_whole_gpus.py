"""Whole GPUs freed at the least cost, all or none."""

from broker.domain.defragmentation.fleet import LiveSlice
from broker.domain.defragmentation.relocation_budget import RelocationBudget
from broker.domain.defragmentation.whole_gpus import place_whole_gpus
from tests.broker.domain.defragmentation.gpus import P7, draw, fleet


def whole(count: int) -> list[LiveSlice]:
    return [LiveSlice(f"wanted-{member}", P7, 0) for member in range(count)]


def test_empty_gpus_are_used_before_any_is_drained() -> None:
    gpus = fleet("1@0", "", "3@4!", "", per_node=1)
    found = place_whole_gpus(gpus, whole(2))
    assert found is not None
    assert (found.gpus, found.steps) == ((1, 3), ())


def test_only_the_missing_number_of_cheapest_gpus_is_drained() -> None:
    gpus = fleet("4@0", "1@0", "3@4!", "", "2@0", per_node=2)
    found = place_whole_gpus(gpus, whole(3), gain=9)
    assert found is not None
    assert set(found.gpus) == {1, 3, 4}
    assert [(step.gpu, step.gain) for step in found.steps] == [(1, 0), (4, 9)]
    assert [draw(gpus)[gpu] for gpu in (1, 3, 4)] == ["7@0"] * 3


def test_a_relocation_target_is_not_drained_afterwards() -> None:
    gpus = fleet("1@0", "1@0", "3@4 3@0!", per_node=3)
    before = draw(gpus)
    assert place_whole_gpus(gpus, whole(2)) is None
    assert draw(gpus) == before


def test_a_gpu_leased_whole_is_not_drained_for_another() -> None:
    gpus = fleet("7@0", "3@0!", per_node=1)
    assert place_whole_gpus(gpus, whole(1)) is None


def test_relocations_stay_within_their_gain_and_budget() -> None:
    def again() -> list[str]:
        return ["1@0", "2@0", "3@4!"]

    assert place_whole_gpus(fleet(*again()), whole(2), gain=2) is None
    assert place_whole_gpus(fleet(*again()), whole(2), budget=RelocationBudget(1)) is None
    budget = RelocationBudget(3)
    assert place_whole_gpus(fleet(*again()), whole(2), gain=3, budget=budget) is not None
    assert budget.remaining == 1
