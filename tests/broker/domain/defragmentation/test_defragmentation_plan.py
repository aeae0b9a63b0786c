"""Plans that drain partly used GPUs with a limited number of relocations."""

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
from tests.broker.domain.defragmentation.gpus import COUNTING, P4, RANKS, draw, fleet


def scattered(gpus: int, fill: float, seed: int, ranks: StateRanks = RANKS) -> SliceFleet:
    """Small slices at chance places, as leases that come and go leave them."""
    chance, table = Random(seed), ranks.table
    made = SliceFleet(StateBuckets(ranks, [gpu // 8 for gpu in range(gpus)]))
    units, number = 0, 0
    while units < fill * 8 * gpus:
        profile, gpu = chance.choices(range(P4 + 1), (30, 25, 20, 10, 10))[0], chance.randrange(gpus)
        if ways := table.options[profile][made.buckets.state_of[gpu]]:
            memory = table.profiles[profile].memory
            made.place_on(gpu, LiveSlice(f"{number}", profile, chance.choice(ways).start, memory))
            units, number = units + memory, number + 1
    return made


def test_a_plan_changes_nothing_before_it_is_applied() -> None:
    gpus = fleet("1@0", "1@1", "3@0", "")
    plan = plan_defragmentation(gpus, reason="two GPUs serve two slices of one unit", gain=5)
    assert draw(gpus) == ["1@0", "1@1", "3@0", ""]
    assert (plan.gpus_before, plan.gpus_after, plan.min_gpus) == (3, 1, 1)
    assert [(step.allocation, step.to_gpu, step.cost, step.gain) for step in plan.steps] == [
        ("0.0", 2, 1, 5),
        ("1.1", 2, 1, 5),
    ]
    assert (plan.cost, plan.gain) == (2, 10)
    assert plan.reason == "two GPUs serve two slices of one unit"


def test_a_plan_can_be_applied_and_reversed_step_by_step() -> None:
    gpus = fleet("1@0", "1@1", "3@0", "")
    plan = plan_defragmentation(gpus)
    for step in plan.steps:
        apply_relocation(gpus, step)
    assert draw(gpus)[:2] == ["", ""]
    for step in plan.inverse:
        apply_relocation(gpus, step)
    assert draw(gpus) == ["1@0", "1@1", "3@0", ""]


def test_a_gpu_is_drained_completely_or_not_at_all() -> None:
    gpus = fleet("1@0 2@2!", "4@0 2@4")
    assert plan_defragmentation(gpus).steps == ()


def test_no_gpu_is_drained_at_a_cost_above_its_gain() -> None:
    gpus = fleet("2@0", "2@2 1@0", "4@0 3@4")
    assert plan_defragmentation(gpus, gain=1).steps == ()
    assert len(plan_defragmentation(gpus, gain=2).steps) == 1


def test_a_plan_stays_within_its_relocation_budget() -> None:
    gpus, budget = fleet("1@0", "1@0", "1@0", "3@0"), RelocationBudget(2)
    assert len(plan_defragmentation(gpus, budget=budget).steps) == 2
    assert budget.remaining == 0


def test_slices_are_relocated_when_no_gpu_can_be_drained_directly() -> None:
    gpus = fleet("3@0", "1@1 3@4", "4@0 2@4", "")
    plan = plan_defragmentation(gpus)
    assert (plan.gpus_before, plan.gpus_after) == (3, 2)
    for step in plan.steps:
        apply_relocation(gpus, step)


SPOILT = ("4@0! 2@4! 1@6", "d@0 2@2 3@4", "1@0")  # the 1g at unit 6 and the d have each other's place


def test_slices_swap_placements_through_an_empty_gpu() -> None:
    gpus = fleet(*SPOILT, "")
    plan = plan_defragmentation(gpus, gain=8)
    assert (plan.gpus_before, plan.gpus_after, plan.gain) == (3, 2, 8)
    assert 3 in {step.to_gpu for step in plan.steps}
    for step in plan.steps:
        apply_relocation(gpus, step)
    assert draw(gpus)[0] == "4@0 2@4 d@6"
    assert draw(gpus)[2:] == ["", ""]


def test_slices_are_not_swapped_without_an_empty_gpu() -> None:
    gpus = fleet(*SPOILT)
    plan = plan_defragmentation(gpus)
    assert (plan.steps, plan.gpus_before, plan.gpus_after) == ((), 3, 3)


@pytest.mark.parametrize("fill", [0.2, 0.5, 0.75])
def test_a_plan_leaves_at_most_two_percent_more_gpus_than_the_minimum(fill: float) -> None:
    gpus = scattered(200, fill, seed=5)
    plan = plan_defragmentation(gpus)
    assert plan.min_gpus is not None
    for step in plan.steps:
        apply_relocation(gpus, step)
    assert gpus.gpus_in_use == plan.gpus_after < plan.gpus_before
    assert plan.gpus_after <= plan.min_gpus * 1.02


@settings(max_examples=20)
@given(st.integers(0, 1000), st.floats(0.1, 0.9), st.sampled_from([RANKS, COUNTING]))
def test_plans_are_deterministic_and_reversible(seed: int, fill: float, ranks: StateRanks) -> None:
    gpus = scattered(8, fill, seed, ranks)
    plan = plan_defragmentation(gpus)
    for allocation in sorted(gpus.gpu_of):  # their history is another one now
        gpu = gpus.gpu_of[allocation]
        gpus.place_on(gpu, gpus.remove(allocation))
    assert plan_defragmentation(gpus) == plan
    before = draw(gpus)
    for step in (*plan.steps, *plan.inverse):
        apply_relocation(gpus, step)
    assert draw(gpus) == before


def test_a_plan_works_without_a_known_minimum_of_gpus() -> None:
    def odd(name: str, size: int, *starts: int) -> Profile:
        places = tuple(Placement(start, size) for start in starts)
        return Profile(name, 1, size, places, len(places), media=False, isolation=Isolation.HARDWARE)

    table = build_state_table((odd("two", 2, 0, 3), odd("three", 3, 2)), 5)
    gpus = SliceFleet(StateBuckets(rank_states(table, bid_price_rule(table, [2, 3])), [0, 0]))
    gpus.place_on(0, LiveSlice("a", 0, 0, 1))
    gpus.place_on(1, LiveSlice("b", 0, 3, 1))
    plan = plan_defragmentation(gpus)
    assert (plan.min_gpus, plan.gpus_after) == (None, 1)
