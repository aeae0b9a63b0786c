"""Relocations that make room for the slices of a gang.

Fleets are drawn as in gpus.py: profile@unit, `!` = immovable.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.domain.defragmentation import gang_room
from broker.domain.defragmentation.fleet import LiveSlice
from broker.domain.defragmentation.gang_room import make_room_for_gang
from broker.domain.defragmentation.relocation_budget import RelocationBudget
from broker.domain.defragmentation.relocation_draft import apply_relocation
from tests.broker.domain.defragmentation.gpus import COUNTING, P1, P2, P3, P4, P7, RANKS, draw, fleet


def gang(count: int, profile: int = P3) -> list[LiveSlice]:
    return [LiveSlice(f"gang-{member}", profile, 0) for member in range(count)]


def test_a_gang_that_fits_on_one_node_relocates_no_lease() -> None:
    gpus = fleet("3@0", "", "3@4", "3@0!", per_node=2)
    found = make_room_for_gang(gpus, gang(3), same_node=True)
    assert found is not None
    assert found.steps == ()
    assert {gpu // 2 for gpu, _ in found.slots} == {0}


def test_a_gang_gets_the_node_with_the_fewest_relocations() -> None:
    gpus = fleet("1@0 1@4", "3@0", "3@0", "1@0", "2@4!", "3@4!", per_node=2)
    found = make_room_for_gang(gpus, gang(4), same_node=True, gain=50)
    assert found is not None
    assert {gpu // 2 for gpu, _ in found.slots} == {1}
    assert {step.allocation for step in found.steps} == {"2.0", "3.0"}
    assert [step.gain for step in found.steps] == [0, 50]
    assert 1 not in {step.to_gpu // 2 for step in found.steps}
    assert sorted(draw(gpus)[2:4]) == ["3@0 3@4", "3@0 3@4"]


def test_a_displaced_slice_uses_an_empty_gpu_only_as_a_last_resort() -> None:
    gpus = fleet("3@0", "3@0", "4@0!", "", per_node=2)
    found = make_room_for_gang(gpus, gang(4), same_node=True)
    assert found is not None
    assert sorted((step.gpu, step.to_gpu) for step in found.steps) == [(0, 2), (1, 3)]


def test_a_gpu_with_immovable_slices_or_a_whole_gpu_lease_is_not_used() -> None:
    gpus = fleet("3@0!", "7@0", "", "", per_node=2)
    assert make_room_for_gang(gpus, gang(3), same_node=True) is not None  # where both GPUs are empty
    gpus = fleet("3@0!", "7@0", "7@0", "", per_node=2)
    before = draw(gpus)
    assert make_room_for_gang(gpus, gang(3), same_node=True) is None
    assert draw(gpus) == before


def test_a_gang_over_several_nodes_gets_slots_on_each() -> None:
    gpus = fleet("1@0 3@4!", "1@0 3@4!", "1@0 2@2!", per_node=1)
    found = make_room_for_gang(gpus, gang(2, P4), same_node=False)
    assert found is not None
    assert {gpu for gpu, _ in found.slots} == {0, 1}
    assert {step.to_gpu for step in found.steps} == {2}


def test_without_free_slots_for_relocated_slices_the_fleet_is_unchanged() -> None:
    gpus = fleet("2@0 3@4!", "7@0!", per_node=1)
    before = draw(gpus)
    assert make_room_for_gang(gpus, gang(1, P4), same_node=True) is None
    assert make_room_for_gang(gpus, gang(1, P4), same_node=False) is None
    assert draw(gpus) == before


def test_a_gpu_removed_from_the_pool_takes_no_gang_member() -> None:
    gpus = fleet("", "", per_node=2)
    gpus.buckets.remove(0)
    assert make_room_for_gang(gpus, gang(3), same_node=True) is None
    assert make_room_for_gang(gpus, gang(2), same_node=True) is not None


def test_cyclic_relocations_leave_the_fleet_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = fleet("1@0 3@4!", "2@0!", per_node=1)
    before = draw(gpus)
    monkeypatch.setattr(gang_room, "order_relocations", lambda *steps: None)
    assert make_room_for_gang(gpus, gang(1, P4), same_node=True) is None
    assert draw(gpus) == before


@pytest.mark.parametrize("same_node", [True, False])
def test_relocations_stay_within_their_gain_and_budget(same_node: bool) -> None:
    def gpus_before() -> list[str]:
        return ["1@0 3@4!", "2@0!"]

    assert make_room_for_gang(fleet(*gpus_before(), per_node=1), gang(1, P4), same_node=same_node, gain=0) is None
    none = RelocationBudget(0)
    assert make_room_for_gang(fleet(*gpus_before(), per_node=1), gang(1, P4), same_node=same_node, budget=none) is None
    budget = RelocationBudget(2)
    found = make_room_for_gang(
        fleet(*gpus_before(), per_node=1), gang(1, P4), same_node=same_node, gain=1, budget=budget
    )
    assert found is not None
    assert (len(found.steps), budget.remaining) == (1, 1)


@settings(max_examples=40)
@given(st.data())
def test_relocation_steps_can_be_applied_in_order(data: st.DataObject) -> None:
    ranks = data.draw(st.sampled_from([RANKS, COUNTING]))
    gpus, twin = fleet(*[""] * 6, per_node=3, ranks=ranks), fleet(*[""] * 6, per_node=3, ranks=ranks)
    for number in range(data.draw(st.integers(1, 24))):
        profile = data.draw(st.sampled_from([*range(P4 + 1), P7]))
        cost = data.draw(st.sampled_from([None, 1, 2, 3]))
        if slot := gpus.place_cheapest(live_slice := LiveSlice(str(number), profile, 0, cost)):
            twin.place_on(slot[0], live_slice.with_start(slot[1]))
    for allocation in data.draw(st.lists(st.sampled_from(sorted(gpus.gpu_of)), unique=True)):
        gpus.remove(allocation)
        twin.remove(allocation)
    members = gang(data.draw(st.integers(1, 4)), data.draw(st.sampled_from([P1, P2, P3, P4])))
    same_node, before = data.draw(st.booleans()), draw(gpus)
    found = make_room_for_gang(gpus, members, same_node=same_node)
    if found is None:
        assert draw(gpus) == before
        return
    for step in found.steps:
        apply_relocation(twin, step)
    for member, (gpu, start) in zip(members, found.slots, strict=True):
        twin.place_on(gpu, member.with_start(start))
    assert draw(twin) == draw(gpus)
    assert not same_node or len({gpu // 3 for gpu, _ in found.slots}) == 1
