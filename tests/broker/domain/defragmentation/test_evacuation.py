"""Evacuation of a node for a gang of whole GPUs."""

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from broker.domain.defragmentation.evacuation import evacuate_node
from broker.domain.defragmentation.fleet import LiveSlice
from broker.domain.defragmentation.relocation_budget import RelocationBudget
from broker.domain.defragmentation.relocation_draft import apply_relocation
from tests.broker.domain.defragmentation.gpus import COUNTING, P4, P7, RANKS, draw, fleet


def gang(count: int) -> list[LiveSlice]:
    return [LiveSlice(f"gang-{member}", P7, 0) for member in range(count)]


def test_a_gang_on_empty_gpus_needs_no_relocation() -> None:
    gpus = fleet("7@0", "", "", "7@0", per_node=2)
    assert evacuate_node(gpus, gang(1)) is not None
    gpus = fleet("7@0", "1@0", "", "", per_node=2)
    found = evacuate_node(gpus, gang(2))
    assert found is not None
    assert (found.gpus, found.steps) == ((2, 3), ())


def test_the_node_with_the_cheapest_evacuation_is_chosen() -> None:
    gpus = fleet("3@0", "3@0", "2@0", "", "4@0", "4@0", per_node=2)
    found = evacuate_node(gpus, gang(2), gain=9)
    assert found is not None
    assert set(found.gpus) == {2, 3}
    assert [(step.allocation, step.cost, step.gain) for step in found.steps] == [("2.0", 2, 9)]
    assert draw(gpus)[2] == draw(gpus)[3] == "7@0"


def test_a_whole_gpu_lease_is_relocated_to_an_empty_gpu_of_another_node() -> None:
    gpus = fleet("7@0", "", "7@0!", "", per_node=2)
    assert evacuate_node(gpus, gang(2), relocate_whole_gpus=False) is None
    found = evacuate_node(gpus, gang(2))
    assert found is not None
    assert [(step.gpu, step.to_gpu) for step in found.steps] == [(0, 3)]
    assert draw(gpus) == ["7@0"] * 4


def test_a_gang_that_cannot_be_placed_completely_relocates_nothing() -> None:
    gpus = fleet("3@0", "", "7@0!", "4@0 3@4!", per_node=2)
    before = draw(gpus)
    assert evacuate_node(gpus, gang(2)) is None
    assert draw(gpus) == before
    assert evacuate_node(gpus, gang(3)) is None


def test_an_evacuation_above_its_gain_or_budget_is_not_planned() -> None:
    def again() -> Sequence[str]:
        return ("2@0", "", "4@0", "4@0", "7@0!", "7@0!")

    assert evacuate_node(fleet(*again(), per_node=2), gang(2), gain=1) is None
    assert evacuate_node(fleet(*again(), per_node=2), gang(2), budget=RelocationBudget(0)) is None
    budget = RelocationBudget(1)
    assert evacuate_node(fleet(*again(), per_node=2), gang(2), budget=budget) is not None
    assert budget.remaining == 0


def test_a_gpu_removed_from_the_pool_takes_no_gang() -> None:
    gpus = fleet("", "", per_node=2)
    gpus.buckets.remove(1)
    assert evacuate_node(gpus, gang(2)) is None
    assert evacuate_node(gpus, gang(1)) is not None


@settings(max_examples=20)
@given(st.data())
def test_evacuation_steps_can_be_applied_in_order(data: st.DataObject) -> None:
    ranks = data.draw(st.sampled_from([RANKS, COUNTING]))
    gpus, twin = fleet(*[""] * 6, per_node=3, ranks=ranks), fleet(*[""] * 6, per_node=3, ranks=ranks)
    for number in range(data.draw(st.integers(1, 20))):
        profile = data.draw(st.sampled_from([*range(P4 + 1), P7]))
        cost = data.draw(st.sampled_from([None, 1, 2, 3]))
        if seat := gpus.place_cheapest(piece := LiveSlice(str(number), profile, 0, cost)):
            twin.place_on(seat[0], piece.with_start(seat[1]))
    for allocation in data.draw(st.lists(st.sampled_from(sorted(gpus.gpu_of)), unique=True)):
        gpus.remove(allocation)
        twin.remove(allocation)
    before, members = draw(gpus), gang(data.draw(st.integers(1, 3)))
    found = evacuate_node(gpus, members)
    if found is None:
        assert draw(gpus) == before
        return
    for step in found.steps:
        apply_relocation(twin, step)
    for member, gpu in zip(members, found.gpus, strict=True):
        twin.place_on(gpu, member)
    assert draw(twin) == draw(gpus)
    assert len({gpu // 3 for gpu in found.gpus}) == 1


def test_a_gang_uses_only_linked_gpus() -> None:
    def paired(gpus: tuple[int, ...]) -> bool:
        return {gpu // 2 for gpu in gpus} in ({0}, {1}, {2}, {3})

    gpus = fleet("1@0", "7@0!", "2@0", "2@0", "7@0!", "7@0!", "2@0 1@2!", "", per_node=4)
    found = evacuate_node(gpus, gang(2), are_near=paired, use_empty_gpus=True)
    assert found is not None
    assert found.gpus == (2, 3)
    assert evacuate_node(fleet("", "7@0!", "", "7@0!", per_node=4), gang(2), are_near=paired) is None


def test_an_empty_gpu_is_used_as_a_last_resort_if_allowed() -> None:
    def again() -> Sequence[str]:
        return ("3@0", "", "7@0!", "")

    assert evacuate_node(fleet(*again(), per_node=2), gang(2)) is None
    found = evacuate_node(fleet(*again(), per_node=2), gang(2), use_empty_gpus=True)
    assert found is not None
    assert [(step.gpu, step.to_gpu) for step in found.steps] == [(0, 3)]
