"""Parsing, validation and exact limits of budget thresholds."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.domain.budgets import (
    MAX_GRACE_MINUTES,
    BudgetMeasure,
    BudgetTerms,
    InvalidBudgetTerms,
    StopScope,
    format_percents,
    has_reached,
    parse_percent,
    parse_percents,
    start_ceiling,
)


@given(st.integers(0, 10**15), st.integers(0, 10**15), st.integers(1, 1000))
def test_a_threshold_is_reached_at_exactly_its_amount(minor: int, limit: int, percent: int) -> None:
    assert has_reached(minor, limit, percent) == (minor > 0 and minor >= Fraction(limit * percent, 100))


@given(st.integers(0, 10**15), st.integers(1, 1000))
def test_the_start_ceiling_is_the_percentage_of_the_limit_rounded_down(limit: int, percent: int) -> None:
    found = start_ceiling(limit, percent)
    assert found is not None
    assert found <= Fraction(limit * percent, 100) < found + 1
    assert start_ceiling(limit, None) is None


@given(st.lists(st.integers(1, 1000), max_size=10))
def test_formatted_percentages_are_parsed_back_sorted(of: list[int]) -> None:
    typed = sorted(set(of))
    assert parse_percents(format_percents(reversed(typed)), "thresholds") == tuple(typed)


def test_percentages_are_parsed_with_signs_unordered_and_without_duplicates() -> None:
    assert parse_percents(" 80 %,50%; 50 ,", "thresholds") == (50, 80)
    assert parse_percents("", "thresholds") == ()


@pytest.mark.parametrize("typed", ["many", "-5", "5.5", "1e3", "\u0663", "99999999999999999999", "50 80"])
def test_a_value_that_is_no_whole_percentage_is_refused(typed: str) -> None:
    with pytest.raises(InvalidBudgetTerms, match="is not a whole percentage") as refusal:
        parse_percent(typed, "stop_all_at")
    assert refusal.value.field == "stop_all_at"


@pytest.mark.parametrize(
    ("terms", "field"),
    [
        ({"thresholds": (0, 50)}, "thresholds"),
        ({"thresholds": (50, 1001)}, "thresholds"),
        ({"thresholds": (80, 50)}, "thresholds"),
        ({"forecast_thresholds": (50, 50)}, "forecast_thresholds"),
        ({"forecast_thresholds": tuple(range(1, 12))}, "forecast_thresholds"),
        ({"stop_new_at": 0}, "stop_new_at"),
        ({"stop_idle_at": 1001}, "stop_idle_at"),
        ({"stop_all_at": -1}, "stop_all_at"),
        ({"grace_minutes": -1}, "grace_minutes"),
        ({"grace_minutes": MAX_GRACE_MINUTES + 1}, "grace_minutes"),
    ],
)
def test_invalid_budget_terms_are_refused_at_their_field(terms: dict[str, tuple[int, ...]], field: str) -> None:
    with pytest.raises(InvalidBudgetTerms) as refusal:
        BudgetTerms(**terms)  # type: ignore[arg-type]
    assert refusal.value.field == field


def test_budget_terms_return_their_stop_and_alert_thresholds() -> None:
    terms = BudgetTerms(stop_idle_at=70, stop_all_at=90)
    assert (terms.stops_at(StopScope.IDLE), terms.stops_at(StopScope.ALL)) == (70, 90)
    assert (terms.alert_thresholds(BudgetMeasure.SPENT), terms.alert_thresholds(BudgetMeasure.FORECAST)) == (
        (50, 80, 100),
        (80, 100),
    )
