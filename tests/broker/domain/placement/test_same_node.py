"""Gang search by node class, compared with a search of all nodes."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.domain.geometry.gpu_state import EMPTY_GPU, Geometry, PlacedSlice
from broker.domain.geometry.profiles import Placement
from broker.domain.placement.buckets.lowest_names import HEAP_SLACK
from broker.domain.placement.costs.engines import PlacementEngine
from broker.domain.placement.gangs import node_classes, same_node
from broker.domain.placement.gangs.gang_search import find_gang_slots
from broker.domain.placement.gangs.topology import GpuLink, Topology
from broker.domain.placement.pool import GpuView, PoolIndex
from broker.domain.placement.slots import Slot
from tests.broker.domain.fleet import FOUR, H100, ONE, ONE_ME, SEVEN, THREE, TWO
from tests.broker.domain.placement.naive_gang_search import naive_gang_slots

WHOLE = H100.whole
LAYOUTS = (
    None,
    None,
    Geometry(frozenset({PlacedSlice(Placement(0, 8), WHOLE)})),
    Geometry(frozenset({PlacedSlice(Placement(0, 4), FOUR), PlacedSlice(Placement(4, 4), THREE)})),
)
WAYS = (
    lambda a, b: GpuLink.BRIDGE if a // 2 == b // 2 else GpuLink.NUMA,
    lambda a, b: GpuLink.NUMA if a // 2 == b // 2 else GpuLink.SYSTEM,
    lambda a, b: GpuLink.SWITCH,
)
ASKED = [(WHOLE, 1), (WHOLE, 2), (WHOLE, 3), (ONE, 3), (THREE, 2), (TWO, 5), (SEVEN, 2), (ONE_ME, 2)]


def topology(node: str, gpus: int, kind: int) -> Topology:
    way = WAYS[kind]
    links = tuple(tuple(way(a, b) for b in range(gpus)) for a in range(gpus))
    return Topology(tuple(f"{node}/{n}" for n in range(gpus)), links)


class Fleet:
    """A pool of a few nodes with random changes."""

    def __init__(self, seed: int, engine: PlacementEngine) -> None:
        self.chance = Random(seed)
        self.gpus = {
            f"n{n}/{c}": GpuView(f"n{n}/{c}", f"n{n}", EMPTY_GPU, self.chance.choice(LAYOUTS))
            for n in range(7)
            for c in range(4)
        }
        self.pool = PoolIndex(H100, self.gpus.values(), engine=engine)
        self.links: dict[str, Topology] = {}
        for n in range(7):
            self.link(f"n{n}")
        self.held: list[tuple[Slot, object]] = []

    def link(self, node: str) -> None:
        kind = self.chance.randrange(4)
        if kind < 3:
            self.links[node] = topology(node, self.chance.choice((3, 4)), kind)
        else:
            self.links.pop(node, None)
        self.pool.mark_links_changed(node)

    def happen(self) -> None:
        what = self.chance.random()
        if what < 0.5:
            profile = self.chance.choice((ONE, TWO, THREE, FOUR, WHOLE, ONE_ME))
            if seat := self.pool.find_cheapest_slot(profile):
                self.pool.hold(seat, profile)
                self.held.append((seat, profile))
        elif what < 0.8 and self.held:
            seat, profile = self.held.pop(self.chance.randrange(len(self.held)))
            self.pool.release(seat, profile)  # type: ignore[arg-type]
        elif what < 0.9:
            self.link(self.chance.choice([f"n{n}" for n in range(7)]))
        else:
            gpu = self.chance.choice(list(self.gpus))
            if all(seat.gpu != gpu for seat, _ in self.held):
                view = self.pool.remove(gpu)
                if self.chance.random() < 0.7:
                    node = self.chance.choice((view.node, "n0"))
                    self.pool.add(GpuView(gpu, node, EMPTY_GPU, self.chance.choice(LAYOUTS)))
                else:
                    del self.gpus[gpu]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(list(PlacementEngine)))
def test_the_chosen_node_matches_a_scan_of_all_nodes(seed: int, engine: PlacementEngine) -> None:
    fleet = Fleet(seed, engine)
    for _ in range(25):
        for _ in range(fleet.chance.randrange(8)):
            fleet.happen()
        profile, count = fleet.chance.choice(ASKED)
        within = fleet.chance.choice((None, GpuLink.BRIDGE, GpuLink.NUMA)) if profile is WHOLE else None
        found = find_gang_slots(
            fleet.pool, profile, count=count, same_node=True, topologies=fleet.links, max_link=within
        )
        assert found == naive_gang_slots(fleet.pool, profile, count, fleet.links, within)


@pytest.mark.parametrize("linked", [False, True])
def test_only_one_of_many_equal_nodes_is_evaluated(linked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = [GpuView(f"n{n:03}/{c}", f"n{n:03}") for n in range(300) for c in range(4)]
    links = {f"n{n:03}": topology(f"n{n:03}", 4, 0) for n in range(300)} if linked else {}
    pool, weighed = PoolIndex(H100, gpus), list[str]()
    once = same_node._gang_on_node
    monkeypatch.setattr(same_node, "_gang_on_node", lambda node, *rest: weighed.append(node) or once(node, *rest))

    def gang(count: int) -> list[str]:
        weighed.clear()
        found = find_gang_slots(pool, WHOLE, count=count, same_node=True, topologies=links)
        return [seat.gpu for seat in found or ()]

    assert (gang(2), weighed) == (["n000/0", "n000/1"], ["n000"])
    pool.hold(Slot("n000/0", Placement(0, 8)), WHOLE)
    pool.hold(Slot("n007/0", Placement(0, 8)), WHOLE)
    assert gang(2) == (["n000/2", "n000/3"] if linked else ["n000/1", "n000/2"])
    assert weighed == ["n000", "n001"] or sorted(weighed) == ["n000", "n001"]
    gang(2)
    assert weighed == []


def test_released_nodes_are_chosen_again_and_do_not_grow_the_heap() -> None:
    nodes = [f"n{n:03}" for n in range(200)]
    pool = PoolIndex(H100, [GpuView(f"{node}/0", node) for node in nodes])

    def gang() -> str:
        found = find_gang_slots(pool, WHOLE, count=1, same_node=True)
        assert found
        return found[0].gpu

    assert gang() == "n000/0"
    for _ in range(3):
        for node in nodes[:100]:
            pool.hold(Slot(f"{node}/0", Placement(0, 8)), WHOLE)
        assert gang() == "n100/0"
        for node in nodes[:100]:
            pool.release(Slot(f"{node}/0", Placement(0, 8)), WHOLE)
        assert gang() == "n000/0"
    alike = next(iter(pool.node_classes(WHOLE)._nodes_by_class.values()))
    assert len(alike._heap) <= 2 * len(nodes) + node_classes.HEAP_SLACK + 1
    for node in nodes:
        pool.hold(Slot(f"{node}/0", Placement(0, 8)), WHOLE)
    assert find_gang_slots(pool, WHOLE, count=1, same_node=True) is None
    assert pool.node_classes(WHOLE)._nodes_by_class == {}


def test_removed_equal_nodes_do_not_grow_the_heap() -> None:
    alike = node_classes._EqualNodes()
    for number in range(5 * HEAP_SLACK):
        alike.nodes.discard(f"node-{number - 2}")
        alike.add(f"node-{number}")
    assert len(alike._heap) <= 2 * len(alike.nodes) + HEAP_SLACK + 1
    assert alike.first() == min(alike.nodes)
