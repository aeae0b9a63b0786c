"""Relocations of small slices that make room for a larger one."""

from hypothesis import given, settings
from hypothesis import strategies as st

from bench.placement_policies.slice_room import SliceRoom, displacement_tries, make_room_for_slice
from broker.domain.defragmentation.displacement import DISPLACEMENT_TRIES
from broker.domain.defragmentation.fleet import LiveSlice
from broker.domain.defragmentation.relocation_budget import RelocationBudget
from broker.domain.defragmentation.relocation_draft import apply_relocation
from broker.domain.geometry.profiles import share_profiles
from broker.domain.lifecycle.states import Isolation
from broker.domain.placement.costs.state_tables import build_state_table
from tests.broker.domain.defragmentation.gpus import (
    COUNTING,
    P1,
    P1_DOUBLE,
    P2,
    P3,
    P4,
    P7,
    RANKS,
    draw,
    fleet,
)

NEW_3G = LiveSlice("new", P3, 0, 4)


def test_a_slice_that_fits_is_placed_without_a_relocation() -> None:
    gpus = fleet("3@0")
    assert make_room_for_slice(gpus, NEW_3G) == SliceRoom(0, 4, ())


def test_a_small_slice_is_relocated_for_a_large_one() -> None:
    gpus = fleet("1@3 3@4", "3@0 2@4!")
    repack = make_room_for_slice(gpus, NEW_3G, gain=4)
    assert repack is not None
    assert (repack.gpu, repack.start) == (0, 0)
    (step,) = repack.steps
    assert (step.allocation, step.gpu, step.start, step.to_gpu, step.to_start) == ("0.3", 0, 3, 1, 6)
    assert (step.cost, step.gain) == (1, 4)
    assert draw(gpus) == ["3@0 3@4", "3@0 2@4 1@6"]


def test_the_exchange_that_leaves_more_sellable_units_is_chosen() -> None:
    gpus = fleet("4@0! 1@5 d@6!", "4@0! d@4")
    assert make_room_for_slice(gpus, LiveSlice("new", P2, 0, 2), tries=(6,)) is not None
    assert draw(gpus) == ["4@0 1@5 d@6", "4@0 2@4 d@6"]  # the 1g at unit 6 would have spoilt the last unit


def test_two_slices_are_relocated_only_for_more_than_half_the_compute_slices() -> None:
    beside = ("4@0! 1@4! 1@5!", "4@0! 1@4! 1@6!")
    assert make_room_for_slice(fleet("1@0 1@2 3@4!", *beside), NEW_3G) is None
    assert make_room_for_slice(fleet("1@0 1@2 3@4!", *beside), LiveSlice("new", P4, 0, 4)) is not None
    assert make_room_for_slice(fleet("1@0 1@2", *beside), LiveSlice("new", P7, 0, 8)) is not None


def test_the_displacement_tries_of_a_share_follow_its_memory() -> None:
    halves = build_state_table(share_profiles(grid=8, isolation=Isolation.SOFT), 8)
    assert [(its.name, displacement_tries(halves, p)) for p, its in enumerate(halves.profiles)] == [
        ("half", DISPLACEMENT_TRIES[:1]),
        ("quarter", ()),
    ]


def test_no_slice_is_relocated_for_a_small_one() -> None:
    gpus = fleet("3@0 2@4! 1@6", "4@0! 1@4! 1@6!")
    assert make_room_for_slice(gpus, LiveSlice("new", P1_DOUBLE, 0, 2)) is None
    assert make_room_for_slice(gpus, LiveSlice("new", P1_DOUBLE, 0, 2), tries=(6,)) is not None


def test_a_slice_may_be_relocated_within_its_own_gpu() -> None:
    gpus = fleet("1@3")
    gpus.place_on(0, LiveSlice("other", P1, 6, None))
    assert make_room_for_slice(gpus, NEW_3G) is not None
    assert draw(gpus) == ["3@0 1@4 1@6"] or draw(gpus) == ["3@0 1@5 1@6"]


def test_without_free_slots_for_evicted_slices_the_fleet_is_unchanged() -> None:
    gpus = fleet("2@0 3@4", "4@0 3@4")
    before = draw(gpus)
    assert make_room_for_slice(gpus, NEW_3G) is None
    assert draw(gpus) == before
    assert "new" not in gpus.gpu_of


def test_a_whole_gpu_is_never_relocated() -> None:
    gpus = fleet("7@0", "7@0", "1@0")
    assert make_room_for_slice(gpus, LiveSlice("new", P7, 0, 8)) is None


def test_an_immovable_slice_is_not_relocated() -> None:
    gpus = fleet("1@3! 3@4", "3@0 2@4!")
    assert make_room_for_slice(gpus, NEW_3G) is None
    assert draw(gpus) == ["1@3 3@4", "3@0 2@4"]


def test_a_relocation_that_costs_more_than_it_gains_is_not_made() -> None:
    gpus = fleet("3@4", "3@0 2@4!")
    gpus.place_on(0, LiveSlice("dear", P1, 3, 9))
    assert make_room_for_slice(gpus, NEW_3G, gain=8) is None
    assert make_room_for_slice(gpus, NEW_3G, gain=9) is not None


def test_only_relocations_spend_the_budget() -> None:
    budget = RelocationBudget(1)
    assert make_room_for_slice(fleet("7@0"), NEW_3G, budget=budget) is None
    assert make_room_for_slice(fleet("1@3 3@4", "3@0 2@4"), NEW_3G, budget=budget) is not None
    assert budget.remaining == 0
    assert make_room_for_slice(fleet("1@3 3@4", "3@0 2@4"), NEW_3G, budget=budget) is None


def test_relocations_per_tenant_are_limited_by_the_budget() -> None:
    pieces = [
        LiveSlice("a", P1, 0, 1, "ten_a"),
        LiveSlice("b", P1, 1, 1, "ten_a"),
        LiveSlice("c", P1, 2, 1, "ten_b"),
    ]
    budget = RelocationBudget(3, per_tenant=1)
    assert not budget.affords(pieces)
    assert budget.affords(pieces[1:])
    budget.spend(pieces[1:])
    assert not budget.affords(pieces[:1])


@settings(max_examples=30)
@given(st.data())
def test_relocation_steps_can_be_applied_in_order_and_reversed(data: st.DataObject) -> None:
    size, ranks = data.draw(st.integers(1, 4)), data.draw(st.sampled_from([RANKS, COUNTING]))
    gpus, twin = fleet(*[""] * size, ranks=ranks), fleet(*[""] * size, ranks=ranks)
    for number in range(data.draw(st.integers(1, 20))):
        profile, cost = data.draw(st.integers(0, P4)), data.draw(st.sampled_from([None, 1, 2]))
        piece = LiveSlice(str(number), profile, 0, cost)
        if seat := gpus.place_cheapest(piece):
            twin.place_on(seat[0], piece.with_start(seat[1]))
    for allocation in data.draw(st.lists(st.sampled_from(sorted(gpus.gpu_of)), unique=True)):
        gpus.remove(allocation)
        twin.remove(allocation)
    before = draw(gpus)
    profile = data.draw(st.integers(0, P7))
    repack = make_room_for_slice(gpus, LiveSlice("new", profile, 0, 1), tries=(40, 40, 40))
    if repack is None:
        assert draw(gpus) == before
        return
    for step in repack.steps:
        assert twin.slices[step.gpu][step.start].cost is not None
        apply_relocation(twin, step)
    twin.place_on(repack.gpu, LiveSlice("new", profile, repack.start, 1))
    assert draw(twin) == draw(gpus)
    twin.remove("new")
    for step in reversed(repack.steps):
        apply_relocation(twin, step.inverse)
    assert draw(twin) == before
