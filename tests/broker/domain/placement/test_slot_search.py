"""The search for the cheapest slot of a slice or a gang."""

from collections import Counter
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.domain.geometry.gpu_state import EMPTY_GPU, Geometry, GpuState, PlacedSlice
from broker.domain.geometry.profiles import Placement, Profile, share_profiles
from broker.domain.lifecycle.states import Isolation
from broker.domain.placement.pool import GpuView, PoolIndex
from broker.domain.placement.slots import Slot
from tests.broker.domain.fleet import (
    FOUR,
    H100,
    ONE,
    ONE_DOUBLE,
    ONE_ME,
    PRO_5000,
    SEVEN,
    THREE,
    TWO,
)
from tests.broker.domain.placement.slot_choices import choose_gang_slots, choose_slot, count_that_fit, weigh

SOFT = share_profiles(grid=8, isolation=Isolation.SOFT)
ANYTHING = (*H100.profiles, H100.whole, *SOFT)


def empty(*, nodes: int, per_node: int) -> list[GpuView]:
    return [GpuView(f"gpu-{n}-{c}", f"node-{n}") for n, c in product(range(nodes), range(per_node))]


def holding(gpu: str, *held: PlacedSlice, node: str = "node-0") -> GpuView:
    return GpuView(gpu, node, Geometry(frozenset(held)).state)


def at(profile: Profile, start: int) -> PlacedSlice:
    return PlacedSlice(profile.placed_at(start), profile)


@settings(max_examples=30)
@given(st.lists(st.sampled_from(ANYTHING), max_size=24))
def test_placements_never_overlap_and_are_always_legal(requests: list[Profile]) -> None:
    pool = PoolIndex(H100, empty(nodes=2, per_node=1))
    gpus = {"gpu-0-0": Geometry(), "gpu-1-0": Geometry()}
    for profile in requests:
        seat = pool.find_cheapest_slot(profile)
        free = [c for c in gpus.values() for p in profile.placements if c.fits(profile, p)]
        assert (seat is None) == (not free)
        if seat:
            pool.hold(seat, profile)
            gpus[seat.gpu] = gpus[seat.gpu].with_held(profile, seat.placement)
    for gpu, geometry in gpus.items():
        assert pool.gpu_view(gpu).state == geometry.state


@settings(max_examples=20)
@given(st.lists(st.sampled_from(ANYTHING), max_size=16), st.randoms(use_true_random=False))
def test_a_changed_index_chooses_the_same_slots_as_a_new_one(requests: list[Profile], random: object) -> None:
    pool, live = PoolIndex(H100, empty(nodes=2, per_node=2)), []
    for profile in requests:
        gpus = [pool.gpu_view(f"gpu-{n}-{c}") for n, c in product(range(2), range(2))]
        random.shuffle(gpus)  # type: ignore[attr-defined]
        seat = pool.find_cheapest_slot(profile)
        assert seat == choose_slot(gpus, profile, H100)
        if seat:
            pool.hold(seat, profile)
            live.append((seat, profile))
        elif live:
            pool.release(*live.pop(random.randrange(len(live))))  # type: ignore[attr-defined]
    for seat, profile in live:
        pool.release(seat, profile)
    assert pool.how_many_fit(H100.whole) == 4


def test_a_small_slice_is_placed_beside_others_before_an_empty_gpu() -> None:
    used = holding("b", at(THREE, 4))
    assert choose_slot([GpuView("a", "node-0"), used], ONE, H100) == Slot("b", Placement(0, 1))


def test_the_first_slice_of_a_gpu_starts_where_least_is_lost() -> None:
    lone = [GpuView("a", "node-0")]
    starts = {p.name: choose_slot(lone, p, H100) for p in (ONE, ONE_DOUBLE, TWO, THREE, FOUR)}
    assert {name: seat and seat.placement.start for name, seat in starts.items()} == {
        "1g.10gb": 0,
        "1g.20gb": 6,
        "2g.20gb": 0,
        "3g.40gb": 4,
        "4g.40gb": 0,
    }


def test_a_slice_does_not_strand_the_eighth_unit_of_a_fuller_gpu() -> None:
    fuller, other = holding("fuller", at(FOUR, 0), at(TWO, 4)), holding("other", at(TWO, 0))
    assert choose_slot([fuller, other], ONE, H100) == Slot("other", Placement(2, 1))
    assert choose_slot([fuller, other], ONE_DOUBLE, H100) == Slot("fuller", Placement(6, 2))


@pytest.mark.parametrize(("profile", "eighths", "compute"), [(SEVEN, 8, 7), (THREE, 4, 3), (ONE_DOUBLE, 2, 1)])
def test_a_slice_costs_its_share_of_memory_plus_a_thousandth_per_compute_slice(
    profile: Profile, eighths: int, compute: int
) -> None:
    choice = weigh(PoolIndex(H100, [GpuView("a", "node-0")]), profile)
    assert choice is not None
    # 7/8 per eighth and 0.001 per compute slice, both times 8000 to stay whole; 4g and 3g fill a GPU.
    assert choice.score.value_loss == {8: 56_056, 4: 28_024, 2: 14_008}[eighths] == 7000 * eighths + 8 * compute


def test_a_fixed_layout_gpu_is_used_before_an_unpartitioned_one() -> None:
    fixed = GpuView("z", "node-0", EMPTY_GPU, Geometry(frozenset({at(SEVEN, 0)})))
    assert choose_slot([GpuView("a", "node-0"), fixed], SEVEN, H100) == Slot("z", Placement(0, 8))


def test_among_equals_the_fuller_gpu_and_then_the_lower_id_is_chosen() -> None:
    less, more = holding("a", at(ONE_DOUBLE, 6)), holding("b", at(ONE_DOUBLE, 6), at(ONE_DOUBLE, 4))
    assert choose_slot([less, more], TWO, H100) == Slot("b", Placement(0, 2))
    twins = [holding("d", at(THREE, 4)), holding("c", at(THREE, 4))]
    assert choose_slot(twins, FOUR, H100) == Slot("c", Placement(0, 4))


def test_a_shared_gpu_is_filled_before_another_is_shared() -> None:
    half, quarter = SOFT
    gpus = [GpuView("a", "n"), holding("b", at(quarter, 0)), holding("c", at(quarter, 0), at(half, 4))]
    assert choose_slot(gpus, quarter, H100) == Slot("c", Placement(2, 2))


def test_an_empty_gpu_is_used_on_the_node_with_the_fewest_empty_gpus() -> None:
    gpus = [*empty(nodes=2, per_node=2)][:3]
    assert choose_slot(gpus, ONE, H100) == Slot("gpu-1-0", Placement(0, 1))


def test_no_slot_is_chosen_if_none_fits() -> None:
    full = holding("a", at(SEVEN, 0))
    assert choose_slot([full], ONE, H100) is None
    assert choose_slot([], ONE, H100) is None
    assert choose_slot([holding("a", at(ONE, 0))], H100.whole, H100) is None


def test_a_gpu_without_mig_is_sold_whole() -> None:
    gpus = [GpuView("a", "node-0")]
    assert choose_slot(gpus, PRO_5000.profiles[0], PRO_5000) is None
    assert choose_slot(gpus, PRO_5000.whole, PRO_5000) == Slot("a", Placement(0, 4))


def test_a_fixed_layout_offers_only_its_own_slots() -> None:
    layout = Geometry(frozenset({at(THREE, 4), at(ONE, 1), at(ONE, 3)}))
    fixed = GpuView("fixed", "node-0", EMPTY_GPU, layout)
    assert choose_slot([fixed], ONE, H100) == Slot("fixed", Placement(1, 1))
    assert choose_slot([fixed], FOUR, H100) is None
    assert choose_slot([fixed], H100.whole, H100) is None
    assert count_that_fit([fixed], ONE, H100) == 2


def test_a_gpu_is_in_the_pool_only_once_and_is_removed_with_its_state() -> None:
    pool = PoolIndex(H100, empty(nodes=1, per_node=2))
    with pytest.raises(ValueError, match="GPU gpu-0-0 is already in the pool"):
        pool.add(GpuView("gpu-0-0", "node-0"))
    pool.hold(Slot("gpu-0-0", Placement(0, 1)), ONE)
    assert pool.remove("gpu-0-0").state == GpuState(1, False, 1, Isolation.HARDWARE)
    assert pool.remove("gpu-0-1").state == EMPTY_GPU
    assert pool.find_cheapest_slot(ONE) is None


def test_holding_an_occupied_slot_or_releasing_a_free_one_is_refused() -> None:
    pool = PoolIndex(H100, empty(nodes=1, per_node=1))
    seat = Slot("gpu-0-0", Placement(0, 1))
    with pytest.raises(ValueError, match="is not held"):
        pool.release(seat, ONE)
    pool.hold(seat, ONE)
    with pytest.raises(ValueError, match="does not fit"):
        pool.hold(seat, ONE)


@settings(max_examples=20)
@given(
    st.lists(st.sampled_from(H100.profiles), max_size=10),
    st.sampled_from((*H100.profiles, H100.whole)),
    st.integers(min_value=1, max_value=9),
)
def test_a_gang_is_placed_exactly_when_all_members_fit(before: list[Profile], wanted: Profile, count: int) -> None:
    pool = PoolIndex(H100, empty(nodes=2, per_node=2))
    for profile in before:
        if seat := pool.find_cheapest_slot(profile):
            pool.hold(seat, profile)
    gpus = [pool.gpu_view(f"gpu-{n}-{c}") for n, c in product(range(2), range(2))]
    for same_node, pools in ((False, [gpus]), (True, [gpus[:2], gpus[2:]])):
        gang = choose_gang_slots(gpus, wanted, H100, count=count, same_node=same_node)
        assert bool(gang) == any(count_that_fit(each, wanted, H100) >= count for each in pools)
        if gang:
            assert len(gang) == count
            copy = PoolIndex(H100, gpus)
            for seat in gang:
                copy.hold(seat, wanted)
            if same_node:
                assert len({copy.gpu_view(seat.gpu).node for seat in gang}) == 1


def test_a_gang_of_whole_gpus_uses_the_node_with_the_fewest_sufficient_gpus() -> None:
    gpus = [c for c in empty(nodes=3, per_node=4) if c.gpu not in ("gpu-1-0", "gpu-2-0", "gpu-2-1", "gpu-2-2")]
    gang = choose_gang_slots(gpus, H100.whole, H100, count=2, same_node=True)
    assert [seat.gpu for seat in gang or ()] == ["gpu-1-1", "gpu-1-2"]


def test_a_gang_of_slices_prefers_a_node_where_it_needs_no_empty_gpu() -> None:
    busy = [holding("x", at(FOUR, 0), node="z"), holding("y", at(FOUR, 0), node="z")]
    gang = choose_gang_slots([*empty(nodes=1, per_node=2), *busy], THREE, H100, count=2, same_node=True)
    assert Counter(seat.gpu for seat in gang or ()) == {"x": 1, "y": 1}


def test_a_gang_is_placed_on_the_node_with_the_smaller_loss() -> None:
    stranding = holding("x", at(FOUR, 0), at(TWO, 4), node="a")
    sparing = holding("y", at(TWO, 0), node="b")
    assert choose_gang_slots([stranding, sparing], ONE, H100, count=1, same_node=True) == (Slot("y", Placement(2, 1)),)


def test_a_gang_spans_nodes_only_if_allowed() -> None:
    gpus = empty(nodes=2, per_node=1)
    assert choose_gang_slots(gpus, H100.whole, H100, count=2, same_node=True) is None
    assert len(choose_gang_slots(gpus, H100.whole, H100, count=2, same_node=False) or ()) == 2


def test_only_one_media_engine_slice_fits_per_gpu() -> None:
    gpus = empty(nodes=1, per_node=2)
    assert count_that_fit(gpus, ONE_ME, H100) == 2
    assert choose_gang_slots(gpus, ONE_ME, H100, count=3, same_node=True) is None


def test_a_gang_without_members_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one member, not 0"):
        choose_gang_slots([], ONE, H100, count=0, same_node=True)


def test_a_gang_with_overlapping_placements_is_refused_completely() -> None:
    runs = (Placement(0, 2), Placement(1, 2), Placement(2, 2))
    crossing = Profile("2g.odd", 2, 2, runs, 2, False, Isolation.HARDWARE)
    large = Profile("4g.odd", 4, 4, (Placement(3, 4),), 1, False, Isolation.HARDWARE)
    seats = {
        *(PlacedSlice(run, crossing) for run in runs),
        PlacedSlice(large.placements[0], large),
        at(ONE, 0),
    }
    gpu = GpuView("a", "node-0", EMPTY_GPU, Geometry(frozenset(seats)))
    assert count_that_fit([gpu], crossing, H100) == 2
    assert choose_gang_slots([gpu], crossing, H100, count=2, same_node=False) is None
