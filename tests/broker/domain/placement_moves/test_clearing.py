"""Whole cards on any node: those that are short are emptied, the cheapest first, all of them or none."""

from broker.domain.placement.budgets import Budget
from broker.domain.placement.clearing import clear
from broker.domain.placement.fleet import Slice
from tests.broker.domain.placement_moves.cards import P7, drawn, fleet


def whole(count: int) -> list[Slice]:
    return [Slice(f"wanted-{member}", P7, 0) for member in range(count)]


def test_empty_cards_are_taken_before_any_is_emptied() -> None:
    cards = fleet("1@0", "", "3@4!", "", per_node=1)
    found = clear(cards, whole(2))
    assert found is not None
    assert (found.cards, found.steps) == ((1, 3), ())


def test_as_many_are_emptied_as_are_short_and_the_cheapest_on_whichever_node() -> None:
    cards = fleet("4@0", "1@0", "3@4!", "", "2@0", per_node=2)
    found = clear(cards, whole(3), gain=9)
    assert found is not None
    assert set(found.cards) == {1, 3, 4}
    assert [(step.card, step.gain) for step in found.steps] == [(1, 0), (4, 9)]
    assert [drawn(cards)[card] for card in (1, 3, 4)] == ["7@0"] * 3


def test_a_card_that_took_what_was_moved_is_not_emptied_after_that() -> None:
    cards = fleet("1@0", "1@0", "3@4 3@0!", per_node=3)
    before = drawn(cards)
    assert clear(cards, whole(2)) is None
    assert drawn(cards) == before


def test_a_card_let_whole_is_not_emptied_for_another() -> None:
    cards = fleet("7@0", "3@0!", per_node=1)
    assert clear(cards, whole(1)) is None


def test_no_more_is_moved_than_it_is_worth_or_the_budget_allows() -> None:
    def again() -> list[str]:
        return ["1@0", "2@0", "3@4!"]

    assert clear(fleet(*again()), whole(2), gain=2) is None
    assert clear(fleet(*again()), whole(2), budget=Budget(1)) is None
    budget = Budget(3)
    assert clear(fleet(*again()), whole(2), gain=3, budget=budget) is not None
    assert budget.left == 1
