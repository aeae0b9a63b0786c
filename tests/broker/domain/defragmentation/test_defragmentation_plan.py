from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.domain.defragmentation.defragmentation_plan import plan_defragmentation
from broker.domain.defragmentation.fleet import LiveSlice, SliceFleet
from broker.domain.defragmentation.relocation_budget import RelocationBudget
from broker.domain.defragmentation.relocation_draft import apply_relocation
from broker.domain.geometry.profiles import Placement, Profile
from broker.domain.lifecycle.states import Isolation
from broker.domain.placement.buckets.state_buckets import StateBuckets
from broker.domain.placement.costs.bid_price_rule import bid_price_rule
from broker.domain.placement.costs.state_ranks import StateRanks, rank_states
from broker.domain.placement.costs.state_tables import build_state_table
from tests.broker.domain.defragmentation.gpus import COUNTING, P4, RANKS, drawn, fleet


def scattered(cards: int, fill: float, seed: int, ranks: StateRanks = RANKS) -> SliceFleet:
    """Small slices at chance places, as leases that come and go leave them."""
    chance, table = Random(seed), ranks.table
    made = SliceFleet(StateBuckets(ranks, [card // 8 for card in range(cards)]))
    units, number = 0, 0
    while units < fill * 8 * cards:
        profile, card = chance.choices(range(P4 + 1), (30, 25, 20, 10, 10))[0], chance.randrange(cards)
        if ways := table.moves[profile][made.buckets.state[card]]:
            memory = table.profiles[profile].memory
            made.hold(card, LiveSlice(f"{number}", profile, chance.choice(ways).start, memory))
            units, number = units + memory, number + 1
    return made


def test_a_plan_moves_nothing_before_it_is_taken() -> None:
    cards = fleet("1@0", "1@1", "3@0", "")
    plan = plan_defragmentation(cards, reason="two cards serve two slices of one unit", gain=5)
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
    plan = plan_defragmentation(cards)
    for step in plan.steps:
        apply_relocation(cards, step)
    assert drawn(cards)[:2] == ["", ""]
    for step in plan.inverse:
        apply_relocation(cards, step)
    assert drawn(cards) == ["1@0", "1@1", "3@0", ""]


def test_a_gpu_is_emptied_whole_or_not_at_all() -> None:
    cards = fleet("1@0 2@2!", "4@0 2@4")
    assert plan_defragmentation(cards).steps == ()


def test_no_gpu_is_emptied_at_a_higher_cost_than_its_worth() -> None:
    cards = fleet("2@0", "2@2 1@0", "4@0 3@4")
    assert plan_defragmentation(cards, gain=1).steps == ()
    assert len(plan_defragmentation(cards, gain=2).steps) == 1


def test_no_more_is_planned_than_the_budget_allows() -> None:
    cards, budget = fleet("1@0", "1@0", "1@0", "3@0"), RelocationBudget(2)
    assert len(plan_defragmentation(cards, budget=budget).steps) == 2
    assert budget.left == 0


def test_others_make_way_where_there_is_no_room_as_things_lie() -> None:
    cards = fleet("3@0", "1@1 3@4", "4@0 2@4", "")
    plan = plan_defragmentation(cards)
    assert (plan.before, plan.after) == (3, 2)
    for step in plan.steps:
        apply_relocation(cards, step)


SPOILT = ("4@0! 2@4! 1@6", "d@0 2@2 3@4", "1@0")  # the 1g at unit 6 and the d have each other's place


def test_slices_change_places_by_way_of_an_empty_gpu() -> None:
    cards = fleet(*SPOILT, "")
    plan = plan_defragmentation(cards, gain=8)
    assert (plan.before, plan.after, plan.gain) == (3, 2, 8)
    assert 3 in {step.to_card for step in plan.steps}
    for step in plan.steps:
        apply_relocation(cards, step)
    assert drawn(cards)[0] == "4@0 2@4 d@6"
    assert drawn(cards)[2:] == ["", ""]


def test_slices_that_would_have_to_change_places_stay_where_no_gpu_is_empty() -> None:
    cards = fleet(*SPOILT)
    plan = plan_defragmentation(cards)
    assert (plan.steps, plan.before, plan.after) == ((), 3, 3)


@pytest.mark.parametrize("fill", [0.2, 0.5, 0.75])
def test_a_fleet_of_small_slices_is_left_within_two_percent_of_the_fewest_gpus(fill: float) -> None:
    cards = scattered(200, fill, seed=5)
    plan = plan_defragmentation(cards)
    assert plan.least is not None
    for step in plan.steps:
        apply_relocation(cards, step)
    assert cards.in_use == plan.after < plan.before
    assert plan.after <= plan.least * 1.02


@settings(max_examples=20)
@given(st.integers(0, 1000), st.floats(0.1, 0.9), st.sampled_from([RANKS, COUNTING]))
def test_the_same_slices_on_the_same_gpus_have_the_same_plan(seed: int, fill: float, ranks: StateRanks) -> None:
    cards = scattered(8, fill, seed, ranks)
    plan = plan_defragmentation(cards)
    for allocation in sorted(cards.card):  # their history is another one now
        card = cards.card[allocation]
        cards.hold(card, cards.lift(allocation))
    assert plan_defragmentation(cards) == plan
    before = drawn(cards)
    for step in (*plan.steps, *plan.inverse):
        apply_relocation(cards, step)
    assert drawn(cards) == before


def test_a_plan_needs_no_closed_form_of_the_fewest_gpus() -> None:
    def odd(name: str, size: int, *starts: int) -> Profile:
        places = tuple(Placement(start, size) for start in starts)
        return Profile(name, 1, size, places, len(places), media=False, isolation=Isolation.HARDWARE)

    table = build_state_table((odd("two", 2, 0, 3), odd("three", 3, 2)), 5)
    cards = SliceFleet(StateBuckets(rank_states(table, bid_price_rule(table, [2, 3])), [0, 0]))
    cards.hold(0, LiveSlice("a", 0, 0, 1))
    cards.hold(1, LiveSlice("b", 0, 3, 1))
    plan = plan_defragmentation(cards)
    assert (plan.least, plan.after) == (None, 1)
