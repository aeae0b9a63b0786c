"""Of cards that cost the same, one on which nothing need be cut; what was only tried leaves no trace."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from broker.domain.geometry import EMPTY, Geometry, Held
from broker.domain.placement.engines import Engine
from broker.domain.placement.gangs import gang_of
from broker.domain.placement.pool import CardView, PoolIndex
from broker.domain.placement.seats import Seat
from broker.domain.placement.warmth import COLD, Warm
from broker.domain.profiles import Profile
from tests.broker.domain.fleet import FOUR, H100, ONE, SEVEN, THREE, TWO


def at(profile: Profile, start: int) -> Held:
    return Held(profile.placed_at(start), profile)


def card(gpu: str, *held: Held, warm: tuple[Held, ...] = (), node: str = "n") -> CardView:
    return CardView(gpu, node, Geometry(frozenset(held)).state, None, frozenset(warm))


def test_of_equal_cards_one_that_has_the_slice_still_cut_is_taken_then_one_with_nothing_in_its_way() -> None:
    four = at(FOUR, 0)
    cards = [card("a", four, warm=(at(TWO, 4),)), card("b", four), card("c", four, warm=(at(THREE, 4),))]
    assert PoolIndex(H100, cards).choose(THREE) == Seat("c", THREE.placed_at(4))
    assert PoolIndex(H100, cards[:2]).choose(THREE) == Seat("b", THREE.placed_at(4))
    assert PoolIndex(H100, cards[:1]).choose(THREE) == Seat("a", THREE.placed_at(4))


def test_of_equals_with_something_left_cut_and_with_nothing_the_first_id_is_taken() -> None:
    four, left = at(FOUR, 0), (at(ONE, 6),)
    for first, second in (("a", "b"), ("b", "a")):  # a pair of units is free on both, and nothing in its way
        cards = [card(first, four, warm=left), card(second, four)]
        assert PoolIndex(H100, cards).choose(TWO) == Seat("a", TWO.placed_at(4))


def test_price_is_never_paid_for_warmth() -> None:
    cards = [card("a", at(FOUR, 0)), card("b", warm=(at(THREE, 4), at(ONE, 0)))]
    assert PoolIndex(H100, cards).choose(THREE) == Seat("a", THREE.placed_at(4))
    # Another start of the same card would spoil room, warm or not.
    alone = [card("a", at(FOUR, 0), warm=(at(ONE, 4),))]
    cold = PoolIndex(H100, [card("a", at(FOUR, 0))]).weigh(ONE)
    warm = PoolIndex(H100, alone).weigh(ONE)
    assert cold
    assert warm
    assert cold.score == warm.score


def test_of_the_empty_cards_of_the_node_that_is_opened_the_quickest_is_taken() -> None:
    cards = [card("a"), card("b", warm=(at(SEVEN, 0),)), card("c", warm=(at(ONE, 2),))]
    elsewhere = [card(gpu, node="m", warm=(at(SEVEN, 0),)) for gpu in "0123"]
    pool = PoolIndex(H100, [*elsewhere, *cards])
    assert pool.choose(SEVEN) == Seat("b", SEVEN.placed_at(0))
    # For a whole card nothing is cut, but what is left is in its way.
    assert pool.choose(H100.whole) == Seat("a", H100.whole.placed_at(0))


def test_what_is_placed_and_released_stays_cut_where_cards_are_cut_for_leases_and_nowhere_else() -> None:
    cold = card("a")
    fixed = CardView("b", "n", EMPTY, Geometry(frozenset({at(THREE, 0)})))
    theirs = CardView("c", "n", EMPTY, None)  # its driver destroys what has ended
    pool = PoolIndex(H100, [cold, fixed, theirs])
    for gpu in "abc":
        seat = Seat(gpu, THREE.placed_at(0))
        pool.hold(seat, THREE)
        pool.release(seat, THREE)
    assert [pool.card(gpu).warm for gpu in "abc"] == [{at(THREE, 0)}, None, None]
    pool.hold(Seat("a", ONE.placed_at(6)), ONE)
    assert pool.card("a").warm == {at(THREE, 0)}
    pool.hold(Seat("a", TWO.placed_at(2)), TWO)
    assert pool.card("a").warm == COLD


def test_the_older_rules_know_nothing_of_it() -> None:
    cards = [card("a", at(FOUR, 0)), card("b", at(FOUR, 0), warm=(at(THREE, 4),))]
    for engine in (Engine.FIRST_FIT, Engine.BEST_FIT):
        assert PoolIndex(H100, cards, engine=engine).choose(THREE) == Seat("a", THREE.placed_at(4))


def test_a_gang_that_was_tried_leaves_every_card_as_it_was() -> None:
    lefts: list[Warm] = [frozenset({at(TWO, 0), at(ONE, 5)}), frozenset({at(THREE, 4)}), COLD]
    cards = [CardView(f"g{n}", "n", EMPTY, None, left) for n, left in enumerate(lefts)]
    pool = PoolIndex(H100, cards)
    assert gang_of(pool, ONE, count=9, same_node=False)
    assert gang_of(pool, ONE, count=99, same_node=False) is None
    assert [pool.card(each.gpu) for each in cards] == cards
    new = PoolIndex(H100, cards)
    assert all(pool.weigh(profile) == new.weigh(profile) for profile in (ONE, TWO, THREE, FOUR, SEVEN))


@settings(max_examples=40, deadline=None)
@given(st.randoms(use_true_random=False))
def test_trials_that_are_undone_restore_what_was_left_exactly(chance: Random) -> None:
    wishes = (ONE, TWO, THREE, FOUR, SEVEN, H100.whole)
    pool = PoolIndex(H100, [card(f"g{n}", node=f"n{n % 2}") for n in range(5)])
    held: list[tuple[Seat, Profile]] = []
    for _ in range(25):
        profile = chance.choice(wishes)
        if held and chance.random() < 0.5:
            pool.release(*held.pop(chance.randrange(len(held))))
        elif seat := pool.choose(profile):
            pool.hold(seat, profile)
            held.append((seat, profile))
    before = {f"g{n}": pool.card(f"g{n}") for n in range(5)}
    with pool.trying() as hold:
        while seat := pool.choose(profile := chance.choice(wishes)):
            hold(seat, profile)
    assert {gpu: pool.card(gpu) for gpu in before} == before
    new = PoolIndex(H100, before.values())
    assert all(pool.weigh(profile) == new.weigh(profile) for profile in wishes)
