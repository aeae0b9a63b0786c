from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.domain.geometry import Held
from broker.domain.placement.warmth import (
    COLD,
    Cutting,
    Warm,
    after_placing,
    after_release,
    cutting,
    still_cut,
)
from broker.domain.profiles import Profile, shares
from broker.domain.states import Isolation
from tests.broker.domain.fleet import FOUR, H100, ONE, SEVEN, THREE, TWO, cut
from tests.broker.domain.placement.naive import NaiveCard, everything

HALF, _ = shares(grid=8, isolation=Isolation.SOFT)
MEDIA = cut("1g.10gb+me")
PROFILES = everything(H100)


def at(profile: Profile, start: int) -> Held:
    return Held(profile.placed_at(start), profile)


def warm(*left: Held) -> Warm:
    return frozenset(left)


@pytest.mark.parametrize(
    ("wanted", "how"),
    [
        (at(TWO, 2), Cutting.WARM),
        (at(TWO, 4), Cutting.FREE),
        (at(ONE, 2), Cutting.ANEW),
        (at(THREE, 0), Cutting.ANEW),
        (at(H100.whole, 0), Cutting.ANEW),
    ],
)
def test_only_the_same_slice_at_the_same_place_is_had_as_it_is_left(wanted: Held, how: Cutting) -> None:
    assert cutting(warm(at(TWO, 2)), wanted.profile, wanted.placement) is how


def test_what_is_placed_destroys_what_it_overlaps_and_nothing_else() -> None:
    left = warm(at(ONE, 0), at(ONE, 1), at(TWO, 4))
    assert after_placing(left, TWO, TWO.placed_at(0)) == warm(at(TWO, 4))
    assert after_placing(left, TWO, TWO.placed_at(4)) == warm(at(ONE, 0), at(ONE, 1))


def test_media_engines_exist_once_so_a_slice_left_with_them_makes_way() -> None:
    left = warm(at(MEDIA, 0), at(ONE, 1))
    assert cutting(left, MEDIA, MEDIA.placed_at(3)) is Cutting.ANEW
    assert after_placing(left, MEDIA, MEDIA.placed_at(3)) == warm(at(ONE, 1))


@pytest.mark.parametrize("other", [H100.whole, HALF])
def test_a_card_that_becomes_something_else_than_slices_has_none_left(other: Profile) -> None:
    left = warm(at(ONE, 6))
    assert after_placing(left, other, other.placements[0]) == COLD
    assert after_release(COLD, other, other.placements[0]) == COLD
    assert still_cut([at(other, 0)], [at(ONE, 6)]) == COLD
    assert still_cut([], [at(other, 0), at(ONE, 6)]) == COLD


def test_the_latest_at_a_place_is_what_is_left_there() -> None:
    assert still_cut([], [at(TWO, 0), at(ONE, 1), at(THREE, 4), at(FOUR, 0)]) == warm(
        at(TWO, 0), at(THREE, 4)
    )
    assert still_cut([at(ONE, 5)], [at(THREE, 4), at(TWO, 0)]) == warm(at(TWO, 0))
    assert still_cut([at(SEVEN, 0)], [at(TWO, 0)]) == COLD


@settings(max_examples=100, deadline=None)
@given(st.randoms(use_true_random=False))
def test_what_the_books_say_is_left_is_what_was_left_step_by_step(chance: Random) -> None:
    card, left, ended = NaiveCard(PROFILES), COLD, list[Held]()
    for _ in range(40):
        if card.on and chance.random() < 0.5:
            number, start = chance.choice(sorted(card.on))
            card.on.remove((number, start))
            ended.insert(0, at(PROFILES[number], start))
            left = after_release(left, PROFILES[number], PROFILES[number].placed_at(start))
        else:
            number = chance.randrange(len(PROFILES))
            if not (starts := card.seats(number)):
                continue
            start = chance.choice(starts)
            card.on.add((number, start))
            left = after_placing(left, PROFILES[number], PROFILES[number].placed_at(start))
        assert still_cut([at(PROFILES[n], start) for n, start in card.on], ended) == left
