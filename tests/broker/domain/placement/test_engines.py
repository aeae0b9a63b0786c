"""The placement engines first fit and best fit, used for comparison."""

import pytest

from broker.domain.geometry.gpu_state import EMPTY_GPU, Geometry, PlacedSlice
from broker.domain.geometry.profiles import Placement, Profile
from broker.domain.placement.costs.engines import PlacementEngine
from broker.domain.placement.gangs.gang_search import find_gang_slots
from broker.domain.placement.pool import GpuView, PoolIndex
from broker.domain.placement.slots import Slot
from tests.broker.domain.fleet import FOUR, H100, ONE, SEVEN, THREE, TWO

WHOLE = H100.whole


def gpu(name: str, *held: tuple[Profile, int], node: str = "n", layout: Geometry | None = None) -> GpuView:
    on = frozenset(PlacedSlice(profile.placed_at(start), profile) for profile, start in held)
    return GpuView(name, node, Geometry(on).state if held else EMPTY_GPU, layout)


def first(engine: PlacementEngine, profile: Profile, *gpus: GpuView) -> tuple[str, int] | None:
    seat = PoolIndex(H100, gpus, engine=engine).find_cheapest_slot(profile)
    return (seat.gpu, seat.placement.start) if seat else None


def test_first_fit_chooses_the_first_gpu_that_fits() -> None:
    gpus = gpu("c", (SEVEN, 0)), gpu("b", (FOUR, 0)), gpu("a")
    assert first(PlacementEngine.FIRST_FIT, THREE, *gpus) == ("a", 4)
    assert first(PlacementEngine.BEST_FIT, THREE, *gpus) == ("b", 4)
    assert first(PlacementEngine.BID_PRICE, THREE, *gpus) == ("b", 4)
    assert first(PlacementEngine.FIRST_FIT, SEVEN, *gpus[:2]) is None


def test_best_fit_chooses_the_first_of_the_fullest_gpus() -> None:
    gpus = gpu("d", (TWO, 0)), gpu("b", (TWO, 0), (ONE, 2)), gpu("a", (ONE, 0), (TWO, 2)), gpu("c")
    assert first(PlacementEngine.BEST_FIT, ONE, *gpus) == ("a", 1)
    assert first(PlacementEngine.BEST_FIT, ONE, *gpus[:2]) == ("b", 3)
    assert first(PlacementEngine.BEST_FIT, WHOLE, *gpus) == ("c", 0)


@pytest.mark.parametrize("engine", [PlacementEngine.FIRST_FIT, PlacementEngine.BEST_FIT])
def test_first_and_best_fit_start_slices_where_most_placements_stay_legal(
    engine: PlacementEngine,
) -> None:
    starts = [first(engine, profile, gpu("a")) for profile in (ONE, TWO, THREE, FOUR)]
    assert starts == [("a", 6), ("a", 4), ("a", 4), ("a", 0)]


@pytest.mark.parametrize("engine", list(PlacementEngine))
def test_every_engine_places_as_many_slices_as_fit(
    engine: PlacementEngine,
) -> None:
    pool = PoolIndex(H100, [gpu(name) for name in "ab"], engine=engine)
    for n in range(14):
        assert pool.how_many_fit(ONE) == 14 - n
        seat = pool.find_cheapest_slot(ONE)
        assert seat is not None
        pool.hold(seat, ONE)
    assert pool.find_cheapest_slot(ONE) is None


def test_first_fit_places_a_gang_on_the_first_node_and_best_fit_on_the_fullest() -> None:
    nodes = [gpu(f"a{n}", node="a") for n in range(4)] + [gpu(f"b{n}", node="b") for n in range(2)]
    for engine, name in (
        (PlacementEngine.FIRST_FIT, "a"),
        (PlacementEngine.BEST_FIT, "b"),
        (PlacementEngine.BID_PRICE, "b"),
    ):
        gang = find_gang_slots(PoolIndex(H100, nodes, engine=engine), WHOLE, count=2, same_node=True)
        assert gang == tuple(Slot(f"{name}{n}", Placement(0, 8)) for n in range(2))


def test_first_fit_uses_gpus_of_a_fixed_layout() -> None:
    layout = Geometry(frozenset({PlacedSlice(THREE.placed_at(4), THREE)}))
    assert first(PlacementEngine.FIRST_FIT, THREE, gpu("b", layout=layout), gpu("c")) == ("b", 4)
