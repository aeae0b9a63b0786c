"""Prices of shares from the cutting-stock problem."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.domain.placement.shares.cutting_stock import best_value_by_free, share_prices
from broker.domain.placement.shares.node_capacity import WHOLE_MILLI


@pytest.mark.parametrize(
    ("popular", "prices"),
    [
        ({500: 2, 250: 4}, {500: 1 / 2, 250: 1 / 4}),
        ({810: 10, 470: 10}, {810: 1, 470: 1 / 2}),  # the remainder of 810 fits no request
        ({810: 1, 160: 5}, {810: 5 / 6, 160: 1 / 6}),  # one in five of 160 goes beside it, six share a GPU
        ({810: 5, 160: 1}, {810: 1, 160: 0}),  # there is more room for 160 beside 810 than requested
        ({}, {}),
    ],
)
def test_the_price_of_a_share_is_the_gpu_fraction_that_one_more_uses(
    popular: dict[int, float], prices: dict[int, float]
) -> None:
    assert share_prices(popular) == pytest.approx(prices)


@settings(max_examples=30, deadline=None)
@given(st.dictionaries(st.integers(1, 19).map(lambda n: 50 * n), st.integers(1, 50), min_size=1, max_size=5))
def test_share_prices_never_exceed_one_gpu_and_cover_the_demand_volume(
    popular: dict[int, float],
) -> None:
    prices = share_prices(popular)
    assert best_value_by_free(prices)[WHOLE_MILLI] <= 1 + 1e-6
    gpus = sum(prices[share] * times for share, times in popular.items())
    volume = sum(share * times for share, times in popular.items()) / WHOLE_MILLI
    alone = sum(times / (WHOLE_MILLI // share) for share, times in popular.items())
    assert volume - 1e-6 <= gpus <= alone + 1e-6


def test_a_remainder_is_worth_its_most_valuable_split() -> None:
    worth = best_value_by_free({470: 0.5, 320: 0.3, WHOLE_MILLI: 1.0})
    assert [worth[left] for left in (0, 319, 320, 469, 470, 640, 790, 999, WHOLE_MILLI)] == pytest.approx(
        [0, 0, 0.3, 0.3, 0.5, 0.6, 0.8, 1.0, 1.0]
    )
