import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.domain.geometry import EMPTY, CardState, Geometry, Held, state_of
from broker.domain.packing import most_of, seats_of
from broker.domain.placement.kinds import everything, kind_of, must_be_of
from broker.domain.placement.tables import EMPTY as UNTOUCHED
from broker.domain.placement.tables import NOWHERE
from broker.domain.profiles import Placement, Profile, shares
from broker.domain.states import Isolation
from tests.broker.domain.fleet import A30, FOUR, H100, ONE, ONE_ME, PRO_5000, SEVEN, THREE, TWO

UNCUT = kind_of(H100, None)
SEATS = seats_of(everything(H100))


def at(profile: Profile, start: int) -> Held:
    return Held(profile.placed_at(start), profile)


@settings(max_examples=80)
@given(st.lists(st.sampled_from(SEATS), max_size=10))
def test_a_card_has_room_for_exactly_what_its_state_says(asked: list[Held]) -> None:
    card, state = EMPTY, UNTOUCHED
    for held in asked:
        number = UNCUT.number[held.profile.name, held.profile.isolation]
        after = UNCUT.table.put[number][held.placement.start][state]
        assert (after != NOWHERE) == card.fits(held.profile, held.placement)
        if after != NOWHERE:
            card, state = card.with_held(held.profile, held.placement), after
    assert UNCUT.state(card) == state
    for number, profile in enumerate(UNCUT.table.profiles):
        assert UNCUT.most[number][state] == most_of(profile, card, None)
        assert (state in UNCUT.cost[number]) == bool(UNCUT.most[number][state])


def test_a_card_that_tells_no_count_is_taken_for_the_one_with_fewest_slices() -> None:
    told = state_of([at(TWO, 0), at(TWO, 2)])
    untold = CardState(told.mask, told.media, told.compute, told.isolation)
    assert untold == told
    assert UNCUT.state(untold) == UNCUT.state(state_of([at(FOUR, 0)]))
    assert UNCUT.table.count(UNCUT.state(told)) == 2


def test_cards_of_one_model_and_layout_share_one_kind() -> None:
    layout = Geometry(frozenset({at(THREE, 4)}))
    assert kind_of(H100, None) is UNCUT
    assert kind_of(H100, Geometry(frozenset({at(THREE, 4)}))) is kind_of(H100, layout)
    assert kind_of(H100, layout) is not UNCUT
    # One that is never cut, and whose grid is notional, is a card as well.
    names = [profile.name for profile in kind_of(PRO_5000, None).table.profiles]
    assert names == ["card", "half", "quarter", "half", "quarter"]


def test_slices_of_an_earlier_layout_take_the_seats_that_they_touch() -> None:
    kind = kind_of(H100, Geometry(frozenset({at(FOUR, 0), at(ONE, 4), at(ONE, 5), at(ONE, 6)})))
    two = state_of([at(TWO, 4)])
    assert kind.state(two) == kind.state(state_of([at(ONE, 4), at(ONE, 5)]))
    assert kind.most[kind.number["1g.10gb", Isolation.HARDWARE]][kind.state(two)] == 1
    alone = kind_of(H100, Geometry(frozenset({at(THREE, 4)})))
    assert alone.state(state_of([at(ONE_ME, 0)])) == UNTOUCHED


def test_a_card_whose_slices_contradict_its_layout_is_nowhere() -> None:
    (half, _) = shares(grid=8, isolation=Isolation.SOFT)
    fixed = kind_of(H100, Geometry(frozenset({at(SEVEN, 0)})))
    assert fixed.state(state_of([at(half, 0)])) == NOWHERE
    runs = (Placement(0, 2), Placement(1, 2))
    crossing = Profile("2g.odd", 2, 2, runs, 1, False, Isolation.HARDWARE)
    odd = kind_of(H100, Geometry(frozenset(Held(run, crossing) for run in runs)))
    assert odd.state(CardState(0b10, False, 1, Isolation.HARDWARE)) == NOWHERE
    assert odd.most[0][NOWHERE] == 0
    assert NOWHERE not in odd.cost[0]


def test_media_engines_in_use_count_where_the_layout_sells_them() -> None:
    kind = kind_of(H100, Geometry(frozenset({at(ONE_ME, 0), at(ONE, 1), at(ONE_ME, 2)})))
    media = kind.number[ONE_ME.name, Isolation.HARDWARE]
    held = state_of([at(ONE_ME, 2)])
    assert kind.most[media][UNTOUCHED] == 1
    assert kind.most[media][kind.state(held)] == 0


def test_prices_of_a_forecast_replace_the_shares_of_memory() -> None:
    dear = kind_of(H100, None, ((("3g.40gb", Isolation.HARDWARE), 10**6),))
    number = dear.number["1g.10gb", Isolation.HARDWARE]
    usual = UNCUT.ranks.best[number][UNTOUCHED].start
    beside_four = dear.state(state_of([at(FOUR, 0)]))
    assert usual == 0
    # The right half is worth a 3g now, and a 1g spoils it: that is the loss.
    assert dear.cost[number][beside_four].loss > 900_000
    assert UNCUT.cost[number][beside_four].loss < 10_000


def test_a_profile_of_another_model_is_refused_and_a_known_one_without_places_is_not() -> None:
    must_be_of(PRO_5000, PRO_5000.profiles[0])
    must_be_of(H100, H100.whole)
    with pytest.raises(ValueError, match=r"A30-24GB has no hardware profile '7g\.80gb'"):
        must_be_of(A30, SEVEN)
