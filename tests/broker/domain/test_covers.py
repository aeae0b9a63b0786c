"""A demand is served whole on the fewest cards there can be, by the same count that placement is measured against."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.domain.best_cuts import best_cuts
from broker.domain.covers import covering
from broker.domain.cuts import CARD, WHOLE, Catalogue, Cut
from broker.domain.filling import Filling
from broker.domain.layouts import CardNow, NodeNow, Rules, plan
from broker.domain.placement.minimum import min_cards
from broker.domain.placement.tables import table_of
from broker.domain.profiles import Placement
from tests.broker.domain.exact import exactly
from tests.broker.domain.filled import card_by_card
from tests.broker.domain.fleet import A30, H100, PRO_6000, TWO, plain

CATALOGUES = {model.name: Catalogue(model, plain(model)) for model in (H100, A30, PRO_6000)}
CATALOGUE = CATALOGUES[H100.name]
ONES, THREES = Cut.of(["1g.10gb"] * 7), Cut.of(["3g.40gb"] * 2)


def fewest(catalogue: Catalogue, demand: dict[str, int]) -> int:
    """The exact minimum, counted by itself: with every profile of the model, whatever is asked for."""
    profiles = (*catalogue.profiles, catalogue.model.whole)
    table = table_of(profiles, catalogue.model.grid)
    return min_cards(table, [demand.get(profile.name, 0) // 1000 for profile in profiles])


@st.composite
def asked(draw: st.DrawFn, unit: int = 1000, most: int = 30) -> tuple[Catalogue, dict[str, int]]:
    catalogue = draw(st.sampled_from([CATALOGUE, CATALOGUE, *CATALOGUES.values()]))
    names = [*(profile.name for profile in catalogue.profiles), CARD]
    counts = draw(st.dictionaries(st.sampled_from(names), st.integers(1, most), min_size=1))
    return catalogue, {name: count * unit for name, count in counts.items()}


@settings(max_examples=150, deadline=None)
@given(asked(), st.data())
def test_a_demand_takes_exactly_the_fewest_cards(
    asks: tuple[Catalogue, dict[str, int]], data: st.DataObject
) -> None:
    catalogue, demand = asks
    cards = fewest(catalogue, demand)
    now = data.draw(st.lists(st.sampled_from(catalogue.cuts), min_size=cards, max_size=cards))
    filling = Filling(catalogue, demand)
    chosen = covering(filling, now, filling.supply([]))
    assert chosen is not None
    assert len(chosen) == cards
    assert all(
        have * 1000 >= milli for have, milli in zip(filling.supply(chosen), filling.asked, strict=True)
    )


@settings(max_examples=60, deadline=None)
@given(asked(most=9), st.data())
def test_the_planner_takes_no_card_more_than_the_fewest(
    asks: tuple[Catalogue, dict[str, int]], data: st.DataObject
) -> None:
    catalogue, demand = asks
    cards = fewest(catalogue, demand)
    cuts = data.draw(st.lists(st.sampled_from(catalogue.cuts), min_size=cards, max_size=cards))
    node = NodeNow("n", tuple(CardNow(index, cut) for index, cut in enumerate(cuts)))
    after = dict(enumerate(cuts))
    for each in plan([node], demand, catalogue, Rules(least_gain_milli=1)):
        after |= dict(each.cuts)
    filling = Filling(catalogue, demand)
    supply = filling.supply(after.values())
    assert all(have * 1000 >= milli for have, milli in zip(supply, filling.asked, strict=True))


@settings(max_examples=60, deadline=None)
@given(asked(unit=500, most=9), st.data())
def test_what_is_served_is_never_worth_less_than_by_filling_card_by_card(
    asks: tuple[Catalogue, dict[str, int]], data: st.DataObject
) -> None:
    catalogue, demand = asks
    now = data.draw(st.lists(st.sampled_from(catalogue.cuts), min_size=1, max_size=5))
    filling = Filling(catalogue, demand)
    served = filling.worth(filling.supply(best_cuts(filling, now, [])))
    assert served >= filling.worth(filling.supply(card_by_card(filling, now)))


def test_where_cards_are_short_more_is_served_than_by_filling_card_by_card() -> None:
    demand = {"1g.10gb": 4500, "1g.20gb": 2000, "3g.40gb": 6000, "4g.40gb": 2500}
    filling, now = Filling(CATALOGUE, demand), [WHOLE] * 3
    served = filling.worth(filling.supply(best_cuts(filling, now, [])))
    assert served == exactly(filling, 3)
    assert served > filling.worth(filling.supply(card_by_card(filling, now)))


def test_cards_that_are_cut_of_use_already_stay_so() -> None:
    filling = Filling(CATALOGUE, {"1g.10gb": 14_000, "3g.40gb": 4000})
    now = [THREES, WHOLE, ONES, WHOLE, WHOLE]
    chosen = covering(filling, now, filling.supply([]))
    assert chosen is not None
    assert Counter(now) - Counter(chosen) == Counter({WHOLE: 2})


def test_what_other_cards_serve_is_not_served_twice() -> None:
    filling = Filling(CATALOGUE, {"1g.10gb": 14_000, "3g.40gb": 2000})
    assert covering(filling, [WHOLE], filling.supply([ONES, ONES])) == [THREES]


def test_what_runs_comes_before_what_ended_lately() -> None:
    filling = Filling(CATALOGUE, {"3g.40gb": 2000, "card": 500})
    assert covering(filling, [WHOLE], filling.supply([])) == [THREES]


def test_slices_that_no_closed_form_knows_are_left_to_the_other_ways() -> None:
    odd = replace(TWO, name="2g.odd", placements=(Placement(1, 2), Placement(4, 2)))
    filling = Filling(Catalogue(H100, [odd]), {"2g.odd": 2000})
    assert covering(filling, [WHOLE], filling.supply([])) is None
    assert best_cuts(filling, [WHOLE], []) == (Cut.of(["2g.odd"] * 2),)


def test_a_node_that_can_do_less_than_its_model_is_left_to_the_other_ways() -> None:
    few = Catalogue(H100, plain(H100), {"1g.10gb": 2})
    filling = Filling(few, {"1g.10gb": 7000})
    assert covering(filling, [WHOLE], filling.supply([])) is None
    assert best_cuts(filling, [WHOLE], []) == (Cut.of(["1g.10gb"] * 2),)


@pytest.mark.parametrize("cards", [1, 2, 3])
def test_where_the_cards_are_too_few_most_is_served(cards: int) -> None:
    demand = {"1g.10gb": 9000, "2g.20gb": 4000, "3g.40gb": 3000, "card": 1000}
    filling = Filling(CATALOGUE, demand)
    chosen = best_cuts(filling, [ONES] * cards, [])
    assert filling.worth(filling.supply(chosen)) == exactly(filling, cards)
