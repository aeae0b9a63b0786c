"""Nodes of one make are looked at once, and the choice is what looking at all of them would have come to."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.domain.geometry import EMPTY, Geometry, Held
from broker.domain.placement import makes, same_node
from broker.domain.placement.engines import Engine
from broker.domain.placement.gangs import gang_of
from broker.domain.placement.lowest import SPARE
from broker.domain.placement.pool import CardView, PoolIndex
from broker.domain.placement.seats import Seat
from broker.domain.placement.topology import Link, Topology
from broker.domain.profiles import Placement
from tests.broker.domain.fleet import FOUR, H100, ONE, ONE_ME, SEVEN, THREE, TWO
from tests.broker.domain.placement.walk import walked

CARD = H100.whole
LAYOUTS = (
    None,
    None,
    Geometry(frozenset({Held(Placement(0, 8), CARD)})),
    Geometry(frozenset({Held(Placement(0, 4), FOUR), Held(Placement(4, 4), THREE)})),
)
WAYS = (
    lambda a, b: Link.BRIDGE if a // 2 == b // 2 else Link.NUMA,
    lambda a, b: Link.NUMA if a // 2 == b // 2 else Link.SYSTEM,
    lambda a, b: Link.SWITCH,
)
ASKED = [(CARD, 1), (CARD, 2), (CARD, 3), (ONE, 3), (THREE, 2), (TWO, 5), (SEVEN, 2), (ONE_ME, 2)]


def topology(node: str, cards: int, kind: int) -> Topology:
    way = WAYS[kind]
    links = tuple(tuple(way(a, b) for b in range(cards)) for a in range(cards))
    return Topology(tuple(f"{node}/{n}" for n in range(cards)), links)


class Fleet:
    """A pool of a few nodes to which anything may happen."""

    def __init__(self, seed: int, engine: Engine) -> None:
        self.chance = Random(seed)
        self.cards = {
            f"n{n}/{c}": CardView(f"n{n}/{c}", f"n{n}", EMPTY, self.chance.choice(LAYOUTS))
            for n in range(7)
            for c in range(4)
        }
        self.pool = PoolIndex(H100, self.cards.values(), engine=engine)
        self.links: dict[str, Topology] = {}
        for n in range(7):
            self.link(f"n{n}")
        self.held: list[tuple[Seat, object]] = []

    def link(self, node: str) -> None:
        kind = self.chance.randrange(4)
        if kind < 3:
            self.links[node] = topology(node, self.chance.choice((3, 4)), kind)
        else:
            self.links.pop(node, None)
        self.pool.linked_anew(node)

    def happen(self) -> None:
        what = self.chance.random()
        if what < 0.5:
            profile = self.chance.choice((ONE, TWO, THREE, FOUR, CARD, ONE_ME))
            if seat := self.pool.choose(profile):
                self.pool.hold(seat, profile)
                self.held.append((seat, profile))
        elif what < 0.8 and self.held:
            seat, profile = self.held.pop(self.chance.randrange(len(self.held)))
            self.pool.release(seat, profile)  # type: ignore[arg-type]
        elif what < 0.9:
            self.link(self.chance.choice([f"n{n}" for n in range(7)]))
        else:
            gpu = self.chance.choice(list(self.cards))
            if all(seat.gpu != gpu for seat, _ in self.held):
                card = self.pool.remove(gpu)
                if self.chance.random() < 0.7:
                    node = self.chance.choice((card.node, "n0"))
                    self.pool.add(CardView(gpu, node, EMPTY, self.chance.choice(LAYOUTS)))
                else:
                    del self.cards[gpu]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(list(Engine)))
def test_the_choice_is_the_one_that_a_walk_over_all_nodes_comes_to(seed: int, engine: Engine) -> None:
    fleet = Fleet(seed, engine)
    for _ in range(25):
        for _ in range(fleet.chance.randrange(8)):
            fleet.happen()
        profile, count = fleet.chance.choice(ASKED)
        within = fleet.chance.choice((None, Link.BRIDGE, Link.NUMA)) if profile is CARD else None
        found = gang_of(
            fleet.pool, profile, count=count, same_node=True, topologies=fleet.links, within=within
        )
        assert found == walked(fleet.pool, profile, count, fleet.links, within)


@pytest.mark.parametrize("linked", [False, True])
def test_of_many_equal_nodes_one_is_weighed(linked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    cards = [CardView(f"n{n:03}/{c}", f"n{n:03}") for n in range(300) for c in range(4)]
    links = {f"n{n:03}": topology(f"n{n:03}", 4, 0) for n in range(300)} if linked else {}
    pool, weighed = PoolIndex(H100, cards), list[str]()
    once = same_node._on
    monkeypatch.setattr(same_node, "_on", lambda node, *rest: weighed.append(node) or once(node, *rest))

    def gang(count: int) -> list[str]:
        weighed.clear()
        found = gang_of(pool, CARD, count=count, same_node=True, topologies=links)
        return [seat.gpu for seat in found or ()]

    assert (gang(2), weighed) == (["n000/0", "n000/1"], ["n000"])
    pool.hold(Seat("n000/0", Placement(0, 8)), CARD)
    pool.hold(Seat("n007/0", Placement(0, 8)), CARD)
    assert gang(2) == (["n000/2", "n000/3"] if linked else ["n000/1", "n000/2"])
    assert weighed == ["n000", "n001"] or sorted(weighed) == ["n000", "n001"]
    gang(2)
    assert weighed == []


def test_nodes_that_come_and_go_leave_nothing_behind() -> None:
    nodes = [f"n{n:03}" for n in range(200)]
    pool = PoolIndex(H100, [CardView(f"{node}/0", node) for node in nodes])

    def gang() -> str:
        found = gang_of(pool, CARD, count=1, same_node=True)
        assert found
        return found[0].gpu

    assert gang() == "n000/0"
    for _ in range(3):
        for node in nodes[:100]:
            pool.hold(Seat(f"{node}/0", Placement(0, 8)), CARD)
        assert gang() == "n100/0"
        for node in nodes[:100]:
            pool.release(Seat(f"{node}/0", Placement(0, 8)), CARD)
        assert gang() == "n000/0"
    alike = next(iter(pool.makes(CARD)._alike.values()))
    assert len(alike._heap) <= 2 * len(nodes) + makes.SPARE + 1
    for node in nodes:
        pool.hold(Seat(f"{node}/0", Placement(0, 8)), CARD)
    assert gang_of(pool, CARD, count=1, same_node=True) is None
    assert pool.makes(CARD)._alike == {}


def test_nodes_that_come_and_go_unseen_leave_no_long_memory() -> None:
    alike = makes._Alike()
    for number in range(5 * SPARE):
        alike.nodes.discard(f"node-{number - 2}")
        alike.add(f"node-{number}")
    assert len(alike._heap) <= 2 * len(alike.nodes) + SPARE + 1
    assert alike.first() == min(alike.nodes)
