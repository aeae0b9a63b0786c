"""The pool index: adding, removing and choosing GPUs."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.domain.geometry.gpu_state import EMPTY_GPU, Geometry, PlacedSlice
from broker.domain.geometry.profiles import Placement, Profile, share_profiles
from broker.domain.lifecycle.states import Isolation
from broker.domain.placement.buckets import lowest_names
from broker.domain.placement.pool import GpuView, PoolIndex
from broker.domain.placement.slots import Slot
from broker.domain.placement.warm_slices import NO_WARM_SLICES
from tests.broker.domain.fleet import FOUR, H100, ONE, SEVEN, THREE, TWO
from tests.broker.domain.placement.slot_choices import weigh

HALF, QUARTER = share_profiles(grid=8, isolation=Isolation.SOFT)


def at(profile: Profile, start: int) -> PlacedSlice:
    return PlacedSlice(profile.placed_at(start), profile)


def holding(gpu: str, *held: PlacedSlice, layout: Geometry | None = None) -> GpuView:
    return GpuView(gpu, "node", Geometry(frozenset(held)).state, layout)


def test_a_gpu_that_contradicts_its_layout_offers_nothing_until_it_matches() -> None:
    layout = Geometry(frozenset({at(SEVEN, 0)}))
    pool = PoolIndex(H100, [holding("a", at(HALF, 0), layout=layout)])
    assert pool.how_many_fit(SEVEN) == 0
    assert pool.find_cheapest_slot(SEVEN) is None
    pool.release(Slot("a", Placement(0, 4)), HALF)
    assert pool.find_cheapest_slot(SEVEN) == Slot("a", Placement(0, 8))
    pool.hold(Slot("a", Placement(4, 4)), HALF)
    assert pool.remove("a").state.isolation is Isolation.SOFT
    assert pool.find_cheapest_slot(SEVEN) is None


def test_gpus_with_equal_layouts_are_of_one_kind() -> None:
    gpus = [GpuView(gpu, "node", EMPTY_GPU, Geometry(frozenset({at(THREE, 4)}))) for gpu in "ba"]
    pool = PoolIndex(H100, gpus)
    assert pool.how_many_fit(THREE) == 2
    assert pool.find_cheapest_slot(THREE) == Slot("a", Placement(4, 4))


def test_a_pool_with_a_duplicate_gpu_is_refused() -> None:
    with pytest.raises(ValueError, match="GPU a is already in the pool"):
        PoolIndex(H100, [GpuView("a", "n"), GpuView("a", "n")])


def test_gpus_added_later_are_chosen_like_initial_ones() -> None:
    pool = PoolIndex(H100)
    layout = Geometry(frozenset({at(FOUR, 0)}))
    for gpu in (
        holding("b", at(THREE, 4)),
        holding("a", at(THREE, 4)),
        GpuView("c", "n", EMPTY_GPU, layout),
    ):
        pool.add(gpu)
    assert pool.find_cheapest_slot(FOUR) == Slot("a", Placement(0, 4))
    pool.remove("a")
    pool.remove("b")
    assert pool.find_cheapest_slot(FOUR) == Slot("c", Placement(0, 4))


def test_a_gpu_with_shares_takes_no_slices_until_it_is_empty() -> None:
    pool = PoolIndex(H100, [holding("a", at(QUARTER, 0))])
    assert pool.find_cheapest_slot(ONE) is None
    assert pool.how_many_fit(H100.whole) == 0
    assert pool.how_many_fit(QUARTER) == 3
    pool.release(Slot("a", Placement(0, 2)), QUARTER)
    assert pool.how_many_fit(H100.whole) == 1


def test_forecast_prices_change_the_chosen_slot() -> None:
    gpus = [holding("four", at(FOUR, 0)), holding("ones", *(at(ONE, n) for n in range(6)))]
    # By shares of memory the last two units are worth more whole than the half beside the 4g loses.
    assert PoolIndex(H100, gpus).find_cheapest_slot(ONE) == Slot("four", Placement(4, 1))
    unwanted = {(name, Isolation.HARDWARE): 10 for name in ("1g.10gb", "1g.20gb", "2g.20gb")}
    # With little demand below a 3g, the 3g placement beside the 4g must stay free.
    assert PoolIndex(H100, gpus, price_list=unwanted).find_cheapest_slot(ONE) == Slot("ones", Placement(6, 1))


def test_among_equal_costs_the_gpu_with_more_slices_is_chosen() -> None:
    gpus = [holding("a", at(FOUR, 0)), holding("b", *(at(ONE, n) for n in range(4)))]
    pool = PoolIndex(H100, gpus)
    assert pool.find_cheapest_slot(THREE) == Slot("b", Placement(4, 4))
    for start in (3, 2):
        pool.release(Slot("b", Placement(start, 1)), ONE)
    pool.hold(Slot("b", Placement(2, 2)), TWO)
    assert pool.find_cheapest_slot(THREE) == Slot("b", Placement(4, 4))
    pool.remove("b")
    assert pool.find_cheapest_slot(THREE) == Slot("a", Placement(4, 4))


def test_among_equal_costs_and_different_layouts_the_lowest_id_is_chosen() -> None:
    a, b = (GpuView(gpu, "n", EMPTY_GPU, Geometry(frozenset({at(ONE, n)}))) for n, gpu in enumerate("ab"))
    assert (
        PoolIndex(H100, [a, b]).find_cheapest_slot(ONE)
        == PoolIndex(H100, [b, a]).find_cheapest_slot(ONE)
        == Slot("a", Placement(0, 1))
    )


LAYOUTS = (None, Geometry(frozenset({at(FOUR, 0), at(THREE, 4)})), Geometry(frozenset({at(SEVEN, 0)})))
PROFILES = (ONE, TWO, THREE, FOUR, SEVEN, H100.whole, QUARTER)


@pytest.mark.parametrize("spare", [0, lowest_names.HEAP_SLACK])
@pytest.mark.deep
def test_a_long_lived_pool_chooses_the_same_slots_as_a_new_one(spare: int) -> None:
    @settings(max_examples=12, deadline=None)
    @given(st.randoms(use_true_random=False))
    def check_random_operations(chance: Random) -> None:
        pool, gpus, held = PoolIndex(H100), set[str](), list[tuple[Slot, Profile]]()
        for _ in range(60):
            act, gpu = chance.randrange(5), f"g{chance.randrange(12):02}"
            on_it = [each for each in held if each[0].gpu == gpu]
            if act == 0 and gpu in gpus:
                pool.remove(gpu)
                gpus.remove(gpu)
                held = [each for each in held if each not in on_it]
            elif act == 0 or gpu not in gpus:
                if gpu not in gpus:
                    layout = chance.choice(LAYOUTS)
                    warm = chance.choice([None, NO_WARM_SLICES]) if layout is None else None
                    pool.add(GpuView(gpu, f"n{chance.randrange(4)}", EMPTY_GPU, layout, warm))
                    gpus.add(gpu)
            elif act == 1 and on_it:
                pool.release(*on_it[0])
                held.remove(on_it[0])
            now = [pool.gpu_view(each) for each in gpus]
            chance.shuffle(now)
            for profile in PROFILES:
                assert weigh(pool, profile) == weigh(PoolIndex(H100, now), profile)
            if (seat := pool.find_cheapest_slot(profile := chance.choice(PROFILES))) and act > 1:
                pool.hold(seat, profile)
                held.append((seat, profile))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lowest_names, "HEAP_SLACK", spare)
        check_random_operations()


def test_numbers_of_removed_gpus_are_reused() -> None:
    pool = PoolIndex(H100, [GpuView("a", "n"), GpuView("b", "m")])
    for _ in range(100):
        for gpu in "ab":
            pool.add(pool.remove(gpu))
    shelf, _ = pool.groups_offering(ONE)[0]
    assert len(shelf.buckets.state_of) == len(shelf.gpus) == 2
