from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.domain.placement.buckets import Buckets
from broker.domain.placement.budgets import Budget
from broker.domain.placement.fleet import Fleet, Slice
from broker.domain.placement.moving import take
from broker.domain.placement.planning import defragment
from broker.domain.placement.ranks import Ranks, ranked
from broker.domain.placement.rules import bid_price
from broker.domain.placement.tables import table_of
from broker.domain.profiles import Placement, Profile
from broker.domain.states import Isolation
from tests.broker.domain.placement_moves.cards import COUNTING, P4, RANKS, drawn, fleet


def scattered(cards: int, fill: float, seed: int, ranks: Ranks = RANKS) -> Fleet:
    """Small slices at chance places, as leases that come and go leave them."""
    chance, table = Random(seed), ranks.table
    made = Fleet(Buckets(ranks, [card // 8 for card in range(cards)]))
    units, number = 0, 0
    while units < fill * 8 * cards:
        profile, card = chance.choices(range(P4 + 1), (30, 25, 20, 10, 10))[0], chance.randrange(cards)
        if ways := table.moves[profile][made.buckets.state[card]]:
            memory = table.profiles[profile].memory
            made.hold(card, Slice(f"{number}", profile, chance.choice(ways).start, memory))
            units, number = units + memory, number + 1
    return made


def test_a_plan_moves_nothing_before_it_is_taken() -> None:
    cards = fleet("1@0", "1@1", "3@0", "")
    plan = defragment(cards, reason="two cards serve two slices of one unit", gain=5)
    assert drawn(cards) == ["1@0", "1@1", "3@0", ""]
    assert (plan.before, plan.after, plan.least) == (3, 1, 1)
    assert [(step.allocation, step.to_card, step.cost, step.gain) for step in plan.steps] == [
        ("0.0", 2, 1, 5),
        ("1.1", 2, 1, 5),
    ]
    assert (plan.cost, plan.gain) == (2, 10)
    assert plan.reason == "two cards serve two slices of one unit"


def test_a_plan_is_taken_step_by_step_and_back_again() -> None:
    cards = fleet("1@0", "1@1", "3@0", "")
    plan = defragment(cards)
    for step in plan.steps:
        take(cards, step)
    assert drawn(cards)[:2] == ["", ""]
    for step in plan.inverse:
        take(cards, step)
    assert drawn(cards) == ["1@0", "1@1", "3@0", ""]


def test_a_card_is_emptied_whole_or_not_at_all() -> None:
    cards = fleet("1@0 2@2!", "4@0 2@4")
    assert defragment(cards).steps == ()


def test_no_card_is_emptied_at_a_higher_cost_than_its_worth() -> None:
    cards = fleet("2@0", "2@2 1@0", "4@0 3@4")
    assert defragment(cards, gain=1).steps == ()
    assert len(defragment(cards, gain=2).steps) == 1


def test_no_more_is_planned_than_the_budget_allows() -> None:
    cards, budget = fleet("1@0", "1@0", "1@0", "3@0"), Budget(2)
    assert len(defragment(cards, budget=budget).steps) == 2
    assert budget.left == 0


def test_others_make_way_where_there_is_no_room_as_things_lie() -> None:
    cards = fleet("3@0", "1@1 3@4", "4@0 2@4", "")
    plan = defragment(cards)
    assert (plan.before, plan.after) == (3, 2)
    for step in plan.steps:
        take(cards, step)


SPOILT = ("4@0! 2@4! 1@6", "d@0 2@2 3@4", "1@0")  # the 1g at unit 6 and the d have each other's place


def test_slices_change_places_by_way_of_an_empty_card() -> None:
    cards = fleet(*SPOILT, "")
    plan = defragment(cards, gain=8)
    assert (plan.before, plan.after, plan.gain) == (3, 2, 8)
    assert 3 in {step.to_card for step in plan.steps}
    for step in plan.steps:
        take(cards, step)
    assert drawn(cards)[0] == "4@0 2@4 d@6"
    assert drawn(cards)[2:] == ["", ""]


def test_slices_that_would_have_to_change_places_stay_where_no_card_is_empty() -> None:
    cards = fleet(*SPOILT)
    plan = defragment(cards)
    assert (plan.steps, plan.before, plan.after) == ((), 3, 3)


@pytest.mark.parametrize("fill", [0.2, 0.5, 0.75])
def test_a_fleet_of_small_slices_is_left_within_two_percent_of_the_fewest_cards(fill: float) -> None:
    cards = scattered(200, fill, seed=5)
    plan = defragment(cards)
    assert plan.least is not None
    for step in plan.steps:
        take(cards, step)
    assert cards.in_use == plan.after < plan.before
    assert plan.after <= plan.least * 1.02


@settings(max_examples=20)
@given(st.integers(0, 1000), st.floats(0.1, 0.9), st.sampled_from([RANKS, COUNTING]))
def test_the_same_slices_on_the_same_cards_have_the_same_plan(seed: int, fill: float, ranks: Ranks) -> None:
    cards = scattered(8, fill, seed, ranks)
    plan = defragment(cards)
    for allocation in sorted(cards.card):  # their history is another one now
        card = cards.card[allocation]
        cards.hold(card, cards.lift(allocation))
    assert defragment(cards) == plan
    before = drawn(cards)
    for step in (*plan.steps, *plan.inverse):
        take(cards, step)
    assert drawn(cards) == before


def test_a_plan_needs_no_closed_form_of_the_fewest_cards() -> None:
    def odd(name: str, size: int, *starts: int) -> Profile:
        places = tuple(Placement(start, size) for start in starts)
        return Profile(name, 1, size, places, len(places), media=False, isolation=Isolation.HARDWARE)

    table = table_of((odd("two", 2, 0, 3), odd("three", 3, 2)), 5)
    cards = Fleet(Buckets(ranked(table, bid_price(table, [2, 3])), [0, 0]))
    cards.hold(0, Slice("a", 0, 0, 1))
    cards.hold(1, Slice("b", 0, 3, 1))
    plan = defragment(cards)
    assert (plan.least, plan.after) == (None, 1)
