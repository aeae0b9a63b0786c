"""Shared GPUs with ids, units and layouts: changes and choice."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.domain.geometry.gpu_state import EMPTY_GPU, Geometry, GpuState, PlacedSlice
from broker.domain.geometry.profiles import Placement, Profile, share_profiles
from broker.domain.lifecycle.states import Isolation
from broker.domain.placement.pool import GpuView, PoolIndex
from broker.domain.placement.shares.node_capacity import NodeCapacity, ShareRequest
from broker.domain.placement.shares.share_pool import PerNodeRule, SharePool
from broker.domain.placement.slots import Slot
from tests.broker.domain.fleet import H100, ONE

HALF, QUARTER = share_profiles(grid=H100.grid, isolation=Isolation.SOFT)


def gpu(gpu: str, *held: tuple[Profile, int], node: str = "n", layout: Geometry | None = None) -> GpuView:
    state: GpuState = EMPTY_GPU
    for profile, start in held:
        state = state.with_held(profile, profile.placed_at(start))
    return GpuView(gpu, node, state, layout)


def pool(*gpus: GpuView) -> SharePool:
    return SharePool(H100, Isolation.SOFT, gpus)


def chosen(profile: Profile, *gpus: GpuView) -> str | None:
    seat = pool(*gpus).find_cheapest_slot(profile)
    return seat.gpu if seat else None


def layout_of(*profiles: tuple[Profile, int]) -> Geometry:
    return Geometry(frozenset(PlacedSlice(profile.placed_at(start), profile) for profile, start in profiles))


QUARTERS = layout_of(*((QUARTER, start) for start in (0, 2, 4, 6)))
SLICES = layout_of(*((ONE, start) for start in range(7)))


def test_a_share_fills_the_free_units_that_it_matches_exactly() -> None:
    three = [(QUARTER, start) for start in (0, 2, 4)]
    assert chosen(QUARTER, gpu("empty"), gpu("one", (QUARTER, 0)), gpu("three", *three)) == "three"
    assert chosen(HALF, gpu("empty"), gpu("one", (QUARTER, 0)), gpu("half", (HALF, 4))) == "half"


def test_an_empty_gpu_is_used_last_regardless_of_node_names() -> None:
    for name in "abcdefgh":
        assert chosen(QUARTER, gpu("empty", node=name), gpu("old", (QUARTER, 0), node="z")) == "old"


def test_two_separate_free_quarters_do_not_fit_a_half() -> None:
    scattered = gpu("scattered", (QUARTER, 0), (QUARTER, 4))
    assert chosen(HALF, scattered) is None
    assert chosen(QUARTER, scattered, gpu("whole half", (HALF, 0))) == "scattered"


def test_a_quarter_is_placed_so_that_the_other_half_stays_free() -> None:
    its = pool(gpu("a", (QUARTER, 0)))
    assert its.find_cheapest_slot(QUARTER) == Slot("a", Placement(2, 2))
    assert its.find_cheapest_slot(HALF) == Slot("a", Placement(4, 4))


def test_a_gpu_with_a_share_layout_is_used_before_an_unpartitioned_one() -> None:
    for name in "abcdefgh":
        uncut, cut = gpu("uncut", node=name), gpu("cut", node=name, layout=QUARTERS)
        assert chosen(QUARTER, uncut, cut) == "cut"
    assert chosen(HALF, gpu("cut", layout=QUARTERS)) is None


def test_gpus_that_serve_another_isolation_take_no_share() -> None:
    _, other = share_profiles(grid=H100.grid, isolation=Isolation.NONE)
    others = gpu("none", (other, 0)), gpu("mig", (ONE, 0)), gpu("cut", layout=SLICES)
    assert chosen(QUARTER, *others) is None
    assert pool(*others).how_many_fit(QUARTER) == 0


def test_nodes_are_filled_in_a_fixed_order() -> None:
    nodes = [gpu(f"gpu-{n}", node=f"node-{n}") for n in range(8)]
    assert len({chosen(QUARTER, *nodes[n:], *nodes[:n]) for n in range(8)}) == 1


def test_profiles_other_than_the_shares_of_the_pool_are_refused() -> None:
    for profile in (ONE, H100.whole, *share_profiles(grid=H100.grid, isolation=Isolation.NONE)):
        with pytest.raises(ValueError, match="H100-80GB shared as soft is not sold as"):
            pool(gpu("a")).find_cheapest_slot(profile)


def test_a_gpu_is_in_the_pool_only_once_and_is_removed_with_its_state() -> None:
    its = pool(gpu("a"), gpu("b"))
    with pytest.raises(ValueError, match="already in the pool"):
        its.add(gpu("a"))
    seat = its.find_cheapest_slot(HALF)
    assert seat
    its.hold(seat, HALF)
    with pytest.raises(ValueError, match="does not fit"):
        its.hold(seat, HALF)
    assert its.remove(seat.gpu) == gpu(seat.gpu, (HALF, seat.placement.start))
    assert its.how_many_fit(HALF) == 2


def test_a_per_node_rule_makes_no_bid_for_a_node_capacity() -> None:
    assert PerNodeRule().bid(NodeCapacity(cpu=0, memory=0, gpus=1), ShareRequest(0, 0, 1, 500)) is None


GPUS = [
    *(gpu(f"u{n}", node=f"node-{n % 3}") for n in range(4)),
    gpu("c0", node="node-0", layout=QUARTERS),
    gpu("c1", node="node-3", layout=layout_of((HALF, 0), (QUARTER, 4))),
]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([HALF, QUARTER]), st.integers(0, 99)), max_size=40))
def test_a_share_pool_agrees_with_a_pool_index_after_any_changes(
    steps: list[tuple[int, Profile, int]],
) -> None:
    its, pool_index = pool(*GPUS), PoolIndex(H100, GPUS)
    held: list[tuple[Slot, Profile]] = []
    for step, profile, pick in steps:
        if step == 0 and held:
            seat, gone = held.pop(pick % len(held))
            its.release(seat, gone)
            pool_index.release(seat, gone)
        elif step == 1:
            its.add(its.remove(GPUS[pick % len(GPUS)].gpu))
        now = [its.gpu_view(each.gpu) for each in GPUS]
        assert now == [pool_index.gpu_view(each.gpu) for each in GPUS]
        chosen = its.find_cheapest_slot(profile)
        assert chosen == pool(*reversed(now)).find_cheapest_slot(profile)
        assert (chosen is None) == (pool_index.find_cheapest_slot(profile) is None)
        assert its.how_many_fit(profile) == pool_index.how_many_fit(profile)
        if chosen and step > 1:
            its.hold(chosen, profile)
            pool_index.hold(chosen, profile)
            held.append((chosen, profile))
