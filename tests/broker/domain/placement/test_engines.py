"""The two older rules: what a replay is set beside."""

import pytest

from broker.domain.geometry import EMPTY, Geometry, Held
from broker.domain.placement.engines import Engine
from broker.domain.placement.gangs import gang_of
from broker.domain.placement.pool import CardView, PoolIndex
from broker.domain.placement.seats import Seat
from broker.domain.profiles import Placement, Profile
from tests.broker.domain.fleet import FOUR, H100, ONE, SEVEN, THREE, TWO

CARD = H100.whole


def card(gpu: str, *held: tuple[Profile, int], node: str = "n", layout: Geometry | None = None) -> CardView:
    on = frozenset(Held(profile.placed_at(start), profile) for profile, start in held)
    return CardView(gpu, node, Geometry(on).state if held else EMPTY, layout)


def first(engine: Engine, profile: Profile, *cards: CardView) -> tuple[str, int] | None:
    seat = PoolIndex(H100, cards, engine=engine).choose(profile)
    return (seat.gpu, seat.placement.start) if seat else None


def test_first_fit_takes_the_first_card_with_room_however_much_that_spoils() -> None:
    cards = card("c", (SEVEN, 0)), card("b", (FOUR, 0)), card("a")
    assert first(Engine.FIRST_FIT, THREE, *cards) == ("a", 4)
    assert first(Engine.BEST_FIT, THREE, *cards) == ("b", 4)
    assert first(Engine.BID_PRICE, THREE, *cards) == ("b", 4)
    assert first(Engine.FIRST_FIT, SEVEN, *cards[:2]) is None


def test_best_fit_takes_the_first_of_the_fullest_cards_whatever_is_on_them() -> None:
    cards = card("d", (TWO, 0)), card("b", (TWO, 0), (ONE, 2)), card("a", (ONE, 0), (TWO, 2)), card("c")
    assert first(Engine.BEST_FIT, ONE, *cards) == ("a", 1)
    assert first(Engine.BEST_FIT, ONE, *cards[:2]) == ("b", 3)
    assert first(Engine.BEST_FIT, CARD, *cards) == ("c", 0)


@pytest.mark.parametrize("engine", [Engine.FIRST_FIT, Engine.BEST_FIT])
def test_the_older_rules_begin_a_slice_where_most_placements_stay_legal_else_high(engine: Engine) -> None:
    starts = [first(engine, profile, card("a")) for profile in (ONE, TWO, THREE, FOUR)]
    assert starts == [("a", 6), ("a", 4), ("a", 4), ("a", 0)]


@pytest.mark.parametrize("engine", list(Engine))
def test_whatever_the_rule_a_full_pool_is_full_and_an_empty_one_takes_as_many(engine: Engine) -> None:
    pool = PoolIndex(H100, [card(gpu) for gpu in "ab"], engine=engine)
    for n in range(14):
        assert pool.how_many_fit(ONE) == 14 - n
        seat = pool.choose(ONE)
        assert seat is not None
        pool.hold(seat, ONE)
    assert pool.choose(ONE) is None


def test_a_gang_goes_to_the_first_node_by_first_fit_and_to_the_fullest_by_best_fit() -> None:
    nodes = [card(f"a{n}", node="a") for n in range(4)] + [card(f"b{n}", node="b") for n in range(2)]
    for engine, name in ((Engine.FIRST_FIT, "a"), (Engine.BEST_FIT, "b"), (Engine.BID_PRICE, "b")):
        gang = gang_of(PoolIndex(H100, nodes, engine=engine), CARD, count=2, same_node=True)
        assert gang == tuple(Seat(f"{name}{n}", Placement(0, 8)) for n in range(2))


def test_cards_of_a_fixed_cut_are_found_by_the_older_rules_too() -> None:
    layout = Geometry(frozenset({Held(THREE.placed_at(4), THREE)}))
    assert first(Engine.FIRST_FIT, THREE, card("b", layout=layout), card("c")) == ("b", 4)
