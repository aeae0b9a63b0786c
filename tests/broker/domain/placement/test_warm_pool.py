"""Choice of slots in a pool with warm slices."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from broker.domain.geometry.gpu_state import EMPTY_GPU, Geometry, PlacedSlice
from broker.domain.geometry.profiles import Profile
from broker.domain.placement.costs.engines import PlacementEngine
from broker.domain.placement.gangs.gang_search import find_gang_slots
from broker.domain.placement.pool import GpuView, PoolIndex
from broker.domain.placement.slots import Slot
from broker.domain.placement.warm_slices import NO_WARM_SLICES, WarmSlices
from tests.broker.domain.fleet import FOUR, H100, ONE, SEVEN, THREE, TWO
from tests.broker.domain.placement.slot_choices import weigh


def at(profile: Profile, start: int) -> PlacedSlice:
    return PlacedSlice(profile.placed_at(start), profile)


def gpu(name: str, *held: PlacedSlice, warm: tuple[PlacedSlice, ...] = (), node: str = "n") -> GpuView:
    return GpuView(name, node, Geometry(frozenset(held)).state, None, frozenset(warm))


def test_a_gpu_with_the_warm_slice_is_preferred_then_one_without_obstacles() -> None:
    four = at(FOUR, 0)
    gpus = [gpu("a", four, warm=(at(TWO, 4),)), gpu("b", four), gpu("c", four, warm=(at(THREE, 4),))]
    assert PoolIndex(H100, gpus).find_cheapest_slot(THREE) == Slot("c", THREE.placed_at(4))
    assert PoolIndex(H100, gpus[:2]).find_cheapest_slot(THREE) == Slot("b", THREE.placed_at(4))
    assert PoolIndex(H100, gpus[:1]).find_cheapest_slot(THREE) == Slot("a", THREE.placed_at(4))


def test_among_equal_gpus_the_first_id_is_chosen_with_or_without_warm_slices() -> None:
    four, left = at(FOUR, 0), (at(ONE, 6),)
    for first, second in (("a", "b"), ("b", "a")):  # a pair of units is free on both, and nothing in its way
        gpus = [gpu(first, four, warm=left), gpu(second, four)]
        assert PoolIndex(H100, gpus).find_cheapest_slot(TWO) == Slot("a", TWO.placed_at(4))


def test_a_warm_slice_never_outweighs_a_lower_placement_cost() -> None:
    gpus = [gpu("a", at(FOUR, 0)), gpu("b", warm=(at(THREE, 4), at(ONE, 0)))]
    assert PoolIndex(H100, gpus).find_cheapest_slot(THREE) == Slot("a", THREE.placed_at(4))
    # Another start of the same GPU would spoil room, warm or not.
    alone = [gpu("a", at(FOUR, 0), warm=(at(ONE, 4),))]
    cold = weigh(PoolIndex(H100, [gpu("a", at(FOUR, 0))]), ONE)
    warm = weigh(PoolIndex(H100, alone), ONE)
    assert cold
    assert warm
    assert cold.score == warm.score


def test_among_empty_gpus_of_a_node_the_one_with_the_warm_slice_is_chosen() -> None:
    gpus = [gpu("a"), gpu("b", warm=(at(SEVEN, 0),)), gpu("c", warm=(at(ONE, 2),))]
    elsewhere = [gpu(name, node="m", warm=(at(SEVEN, 0),)) for name in "0123"]
    pool = PoolIndex(H100, [*elsewhere, *gpus])
    assert pool.find_cheapest_slot(SEVEN) == Slot("b", SEVEN.placed_at(0))
    # For a whole GPU nothing is cut, but what is left is in its way.
    assert pool.find_cheapest_slot(H100.whole) == Slot("a", H100.whole.placed_at(0))


def test_a_released_slice_stays_warm_only_where_gpus_are_partitioned_per_lease() -> None:
    cold = gpu("a")
    fixed = GpuView("b", "n", EMPTY_GPU, Geometry(frozenset({at(THREE, 0)})))
    theirs = GpuView("c", "n", EMPTY_GPU, None)  # its driver destroys what has ended
    pool = PoolIndex(H100, [cold, fixed, theirs])
    for name in "abc":
        seat = Slot(name, THREE.placed_at(0))
        pool.hold(seat, THREE)
        pool.release(seat, THREE)
    assert [pool.gpu_view(name).warm for name in "abc"] == [{at(THREE, 0)}, None, None]
    pool.hold(Slot("a", ONE.placed_at(6)), ONE)
    assert pool.gpu_view("a").warm == {at(THREE, 0)}
    pool.hold(Slot("a", TWO.placed_at(2)), TWO)
    assert pool.gpu_view("a").warm == NO_WARM_SLICES


def test_first_fit_and_best_fit_ignore_warm_slices() -> None:
    gpus = [gpu("a", at(FOUR, 0)), gpu("b", at(FOUR, 0), warm=(at(THREE, 4),))]
    for engine in (PlacementEngine.FIRST_FIT, PlacementEngine.BEST_FIT):
        assert PoolIndex(H100, gpus, engine=engine).find_cheapest_slot(THREE) == Slot("a", THREE.placed_at(4))


def test_a_gang_search_leaves_every_gpu_unchanged() -> None:
    lefts: list[WarmSlices] = [frozenset({at(TWO, 0), at(ONE, 5)}), frozenset({at(THREE, 4)}), NO_WARM_SLICES]
    gpus = [GpuView(f"g{n}", "n", EMPTY_GPU, None, left) for n, left in enumerate(lefts)]
    pool = PoolIndex(H100, gpus)
    assert find_gang_slots(pool, ONE, count=9, same_node=False)
    assert find_gang_slots(pool, ONE, count=99, same_node=False) is None
    assert [pool.gpu_view(each.gpu) for each in gpus] == gpus
    new = PoolIndex(H100, gpus)
    assert all(weigh(pool, profile) == weigh(new, profile) for profile in (ONE, TWO, THREE, FOUR, SEVEN))


@settings(max_examples=40, deadline=None)
@given(st.randoms(use_true_random=False))
def test_undone_trials_restore_all_warm_slices(chance: Random) -> None:
    requested_profiles = (ONE, TWO, THREE, FOUR, SEVEN, H100.whole)
    pool = PoolIndex(H100, [gpu(f"g{n}", node=f"n{n % 2}") for n in range(5)])
    held: list[tuple[Slot, Profile]] = []
    for _ in range(25):
        profile = chance.choice(requested_profiles)
        if held and chance.random() < 0.5:
            pool.release(*held.pop(chance.randrange(len(held))))
        elif seat := pool.find_cheapest_slot(profile):
            pool.hold(seat, profile)
            held.append((seat, profile))
    before = {f"g{n}": pool.gpu_view(f"g{n}") for n in range(5)}
    with pool.hold_temporarily() as hold:
        while seat := pool.find_cheapest_slot(profile := chance.choice(requested_profiles)):
            hold(seat, profile)
    assert {gpu: pool.gpu_view(gpu) for gpu in before} == before
    new = PoolIndex(H100, before.values())
    assert all(weigh(pool, profile) == weigh(new, profile) for profile in requested_profiles)
