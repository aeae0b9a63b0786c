"""Spend forecast from past weeks, with intervals."""

from fractions import Fraction
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.domain.spend_forecast import MAX_DAYS, MIN_DAYS, ExpectedCost, WeeklyPattern

AMOUNTS = st.integers(0, 10**24)
PAST = st.lists(AMOUNTS, min_size=MIN_DAYS, max_size=2 * MAX_DAYS)


def test_a_repeating_week_is_forecast_exactly() -> None:
    week = [10, 20, 30, 40, 50, 0, 0]
    rows = list(WeeklyPattern(week * 4).forecast_days(9))
    assert [each.day.amount for each in rows] == [10, 20, 30, 40, 50, 0, 0, 10, 20]
    assert rows[-1].until_then == ExpectedCost(180, 180, 180)


def test_only_the_rest_of_today_is_forecast() -> None:
    first, second = WeeklyPattern([100] * 14).forecast_days(2, left_of_first=Fraction(1, 4))
    assert (first.day.amount, second.until_then.amount) == (25, 125)


def test_varying_days_widen_the_interval() -> None:
    first, *_, last = WeeklyPattern([90] * 7 + [110] * 7).forecast_days(14)
    # Each differs by 10, fourteen squares shared by the seven days that are free to differ: 200, of which t is 1.42. A
    # day differs by itself and by half of it again, for what is usual was seen twice.
    assert first.day == ExpectedCost(100, 100 - 24, 100 + 24)
    # Two weeks: fourteen days for themselves, and each of seven means off twice.
    assert last.until_then == ExpectedCost(1400, 1400 - 105, 1400 + 105)


@pytest.mark.parametrize("days", [14, 21, 28])
@pytest.mark.deep
def test_80_percent_interval_covers_80_percent_of_months(days: int) -> None:
    chance, hits, tries = Random(days), 0, 1000
    for _ in range(tries):
        usual = [chance.uniform(500, 2000) for _ in range(7)]
        went = [int(1000 * chance.gauss(usual[n % 7], 100)) for n in range(days + 28)]
        *_, found = WeeklyPattern(went[:days]).forecast_days(28)
        hits += found.until_then.low <= sum(went[days:]) <= found.until_then.high
    assert 760 <= hits <= 840


def test_no_forecast_with_less_than_two_weeks_of_history() -> None:
    assert not WeeklyPattern([]).has_enough_history
    assert not WeeklyPattern([0] * 50).has_enough_history
    assert not WeeklyPattern([0] * 50 + [5] * (MIN_DAYS - 1)).has_enough_history
    assert WeeklyPattern([5] + [0] * (MIN_DAYS - 1)).has_enough_history


def test_days_older_than_four_weeks_are_ignored() -> None:
    assert next(WeeklyPattern([999] * 60 + [1] * MAX_DAYS).forecast_days(1)).day == ExpectedCost(1, 1, 1)


@given(PAST, st.integers(1, 31), st.fractions(0, 1))
def test_cumulative_forecast_is_non_negative_and_never_falls(past: list[int], days: int, left: Fraction) -> None:
    rows = list(WeeklyPattern(past).forecast_days(days, left_of_first=left))
    assert len(rows) == days
    for each in rows:
        for likely in (each.day, each.until_then):
            assert 0 <= likely.low <= likely.amount <= likely.high
    sums = [each.until_then.amount for each in rows]
    assert sums == sorted(sums)
    assert sums[-1] == sum(each.day.amount for each in rows)
    assert all(each.until_then.high >= each.day.high for each in rows)


@given(PAST, st.integers(0, 10**24))
def test_known_costs_shift_the_interval_without_widening_it(past: list[int], known: int) -> None:
    likely = next(WeeklyPattern(past).forecast_days(1)).day
    found = likely.plus(known)
    assert found.amount - known == likely.amount
    assert found.high - found.low == likely.high - likely.low
