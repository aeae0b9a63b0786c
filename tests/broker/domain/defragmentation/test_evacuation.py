from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from broker.domain.defragmentation.evacuation import evacuate_node
from broker.domain.defragmentation.fleet import LiveSlice
from broker.domain.defragmentation.relocation_budget import RelocationBudget
from broker.domain.defragmentation.relocation_draft import apply_relocation
from tests.broker.domain.defragmentation.gpus import COUNTING, P4, P7, RANKS, drawn, fleet


def gang(count: int) -> list[LiveSlice]:
    return [LiveSlice(f"gang-{member}", P7, 0) for member in range(count)]


def test_a_gang_that_finds_its_gpus_empty_moves_nothing() -> None:
    cards = fleet("7@0", "", "", "7@0", per_node=2)
    assert evacuate_node(cards, gang(1)) is not None
    cards = fleet("7@0", "1@0", "", "", per_node=2)
    found = evacuate_node(cards, gang(2))
    assert found is not None
    assert (found.cards, found.steps) == ((2, 3), ())


def test_the_node_is_taken_where_least_has_to_go() -> None:
    cards = fleet("3@0", "3@0", "2@0", "", "4@0", "4@0", per_node=2)
    found = evacuate_node(cards, gang(2), gain=9)
    assert found is not None
    assert set(found.cards) == {2, 3}
    assert [(step.allocation, step.cost, step.gain) for step in found.steps] == [("2.0", 2, 9)]
    assert drawn(cards)[2] == drawn(cards)[3] == "7@0"


def test_a_whole_gpu_goes_to_an_empty_one_of_another_node() -> None:
    cards = fleet("7@0", "", "7@0!", "", per_node=2)
    assert evacuate_node(cards, gang(2), whole_gpus=False) is None
    found = evacuate_node(cards, gang(2))
    assert found is not None
    assert [(step.card, step.to_card) for step in found.steps] == [(0, 3)]
    assert drawn(cards) == ["7@0"] * 4


def test_a_gang_starts_whole_or_nothing_moves() -> None:
    cards = fleet("3@0", "", "7@0!", "4@0 3@4!", per_node=2)
    before = drawn(cards)
    assert evacuate_node(cards, gang(2)) is None
    assert drawn(cards) == before
    assert evacuate_node(cards, gang(3)) is None


def test_a_node_too_dear_or_beyond_the_budget_is_passed_over() -> None:
    def again() -> Sequence[str]:
        return ("2@0", "", "4@0", "4@0", "7@0!", "7@0!")

    assert evacuate_node(fleet(*again(), per_node=2), gang(2), gain=1) is None
    assert evacuate_node(fleet(*again(), per_node=2), gang(2), budget=RelocationBudget(0)) is None
    budget = RelocationBudget(1)
    assert evacuate_node(fleet(*again(), per_node=2), gang(2), budget=budget) is not None
    assert budget.left == 0


def test_a_gpu_that_left_the_pool_is_no_place_for_a_gang() -> None:
    cards = fleet("", "", per_node=2)
    cards.buckets.remove(1)
    assert evacuate_node(cards, gang(2)) is None
    assert evacuate_node(cards, gang(1)) is not None


@settings(max_examples=20)
@given(st.data())
def test_the_steps_of_an_evacuation_can_be_taken_in_their_order(data: st.DataObject) -> None:
    ranks = data.draw(st.sampled_from([RANKS, COUNTING]))
    cards, twin = fleet(*[""] * 6, per_node=3, ranks=ranks), fleet(*[""] * 6, per_node=3, ranks=ranks)
    for number in range(data.draw(st.integers(1, 20))):
        profile = data.draw(st.sampled_from([*range(P4 + 1), P7]))
        cost = data.draw(st.sampled_from([None, 1, 2, 3]))
        if seat := cards.place(piece := LiveSlice(str(number), profile, 0, cost)):
            twin.hold(seat[0], piece.at(seat[1]))
    for allocation in data.draw(st.lists(st.sampled_from(sorted(cards.card)), unique=True)):
        cards.lift(allocation)
        twin.lift(allocation)
    before, members = drawn(cards), gang(data.draw(st.integers(1, 3)))
    found = evacuate_node(cards, members)
    if found is None:
        assert drawn(cards) == before
        return
    for step in found.steps:
        apply_relocation(twin, step)
    for member, card in zip(members, found.cards, strict=True):
        twin.hold(card, member)
    assert drawn(twin) == drawn(cards)
    assert len({card // 3 for card in found.cards}) == 1


def test_a_gang_takes_only_gpus_that_are_near_to_each_other() -> None:
    def paired(cards: tuple[int, ...]) -> bool:
        return {card // 2 for card in cards} in ({0}, {1}, {2}, {3})

    cards = fleet("1@0", "7@0!", "2@0", "2@0", "7@0!", "7@0!", "2@0 1@2!", "", per_node=4)
    found = evacuate_node(cards, gang(2), near=paired, opening=True)
    assert found is not None
    assert found.cards == (2, 3)
    assert evacuate_node(fleet("", "7@0!", "", "7@0!", per_node=4), gang(2), near=paired) is None


def test_where_there_is_no_other_room_an_empty_gpu_is_opened_if_it_may_be() -> None:
    def again() -> Sequence[str]:
        return ("3@0", "", "7@0!", "")

    assert evacuate_node(fleet(*again(), per_node=2), gang(2)) is None
    found = evacuate_node(fleet(*again(), per_node=2), gang(2), opening=True)
    assert found is not None
    assert [(step.card, step.to_card) for step in found.steps] == [(0, 3)]
