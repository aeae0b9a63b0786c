"""Rounding, arithmetic, formatting and parsing of amounts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from billing.domain.money import (
    EXACT_PER_UNIT,
    EXPONENTS,
    InvalidAmount,
    MixedCurrencies,
    Money,
    decimal_string,
    exponent_of,
    format_fixed_point,
    format_minor,
    half_up,
    parse_amount,
    to_minor,
    to_minor_up,
)

numbers = st.integers(min_value=-(10**30), max_value=10**30)
positive = st.integers(min_value=1, max_value=10**18)
currencies = st.sampled_from(sorted(EXPONENTS))


@given(numbers, positive)
def test_rounding_is_never_off_by_more_than_half(numerator: int, denominator: int) -> None:
    assert 2 * abs(half_up(numerator, denominator) * denominator - numerator) <= denominator


@given(numbers, positive)
def test_a_credit_rounds_as_the_mirror_of_its_charge(numerator: int, denominator: int) -> None:
    assert half_up(-numerator, denominator) == -half_up(numerator, denominator)
    assert half_up(numerator, -denominator) == -half_up(numerator, denominator)


@pytest.mark.parametrize(
    ("numerator", "rounded"), [(5, 1), (15, 2), (25, 3), (4, 0), (-5, -1), (-15, -2), (-4, 0), (0, 0)]
)
def test_halves_are_rounded_away_from_zero(numerator: int, rounded: int) -> None:
    assert half_up(numerator, 10) == rounded


@pytest.mark.parametrize(("currency", "minor"), [("EUR", 100), ("JPY", 1), ("KWD", 1000), ("ISK", 1)])
def test_one_currency_unit_has_as_many_minor_units_as_its_decimals(currency: str, minor: int) -> None:
    assert Money.of_exact(EXACT_PER_UNIT, currency) == Money(minor, currency)


@settings(max_examples=40)
@given(numbers, currencies)
def test_rounding_up_exceeds_the_charge_by_less_than_one_minor_unit(exact: int, currency: str) -> None:
    exponent = exponent_of(currency)
    up = to_minor_up(exact, exponent)
    assert 0 <= up * EXACT_PER_UNIT - exact * 10**exponent < EXACT_PER_UNIT
    assert up - to_minor(exact, exponent) in (0, 1)


@settings(max_examples=40)
@given(numbers, numbers, currencies)
def test_addition_subtraction_negation_and_comparison_agree(one: int, other: int, currency: str) -> None:
    a, b = Money(one, currency), Money(other, currency)
    assert a + b - b == a
    assert a - b == a + -b == -(b - a)
    assert (a < b, a <= b, a > b, a >= b) == (one < other, one <= other, one > other, one >= other)


@pytest.mark.parametrize("step", ["__add__", "__sub__", "__lt__", "__le__", "__gt__", "__ge__"])
def test_arithmetic_with_mixed_currencies_is_refused(step: str) -> None:
    with pytest.raises(MixedCurrencies, match="EUR and USD do not mix"):
        getattr(Money(1, "EUR"), step)(Money(1, "USD"))


def test_equal_amounts_of_different_currencies_are_not_equal() -> None:
    assert Money(1, "EUR") != Money(1, "USD")


@pytest.mark.parametrize("code", ["eur", "XXX", ""])
def test_an_unknown_currency_is_refused(code: str) -> None:
    with pytest.raises(ValueError, match="unknown currency"):
        Money(1, code)


@pytest.mark.parametrize(
    ("minor", "currency", "text"),
    [
        (1234, "EUR", "12.340000"),
        (-5, "EUR", "-0.050000"),
        (1234, "JPY", "1234.000000"),
        (1234, "KWD", "1.234000"),
    ],
)
def test_api_amounts_have_six_decimals(minor: int, currency: str, text: str) -> None:
    assert decimal_string(minor, currency) == text


@pytest.mark.parametrize(
    ("minor", "currency", "text"),
    [
        (164218, "EUR", "€1,642.18"),
        (-164218, "EUR", "\u2212€1,642.18"),
        (0, "USD", "$0.00"),
        (123456789, "JPY", "¥123,456,789"),
        (1234, "KWD", "KWD\u00a01.234"),
    ],
)
def test_displayed_amounts_have_symbol_thousands_groups_and_a_minus_sign(minor: int, currency: str, text: str) -> None:
    assert format_minor(minor, currency) == str(Money(minor, currency)) == text


@settings(max_examples=40)
@given(numbers, st.integers(min_value=0, max_value=9))
def test_a_fixed_point_number_round_trips(value: int, decimals: int) -> None:
    text = format_fixed_point(value, decimals)
    assert int(text.replace(".", "")) == value
    assert len(text.partition(".")[2]) == decimals


@given(st.integers(0, 10**15 - 1), currencies)
def test_a_formatted_amount_is_parsed_back(minor: int, currency: str) -> None:
    assert parse_amount(format_fixed_point(minor, exponent_of(currency)), currency) == minor


@pytest.mark.parametrize(("text", "currency", "minor"), [(" 12.5 ", "EUR", 1250), ("7", "JPY", 7), ("0.005", "KWD", 5)])
def test_amounts_are_parsed_with_fewer_decimals_and_blanks(text: str, currency: str, minor: int) -> None:
    assert parse_amount(text, currency) == minor


@pytest.mark.parametrize(
    ("text", "currency"),
    [("", "EUR"), ("1.005", "EUR"), ("1.5", "JPY"), ("-1", "EUR"), ("1,5", "EUR"), ("1e3", "EUR"), ("1.", "EUR"),
     ("NaN", "EUR"), ("\u0661", "EUR"), ("9" * 16, "EUR")],
)  # fmt: skip
def test_an_invalid_amount_for_its_currency_is_refused(text: str, currency: str) -> None:
    with pytest.raises(InvalidAmount, match=f"not an amount in {currency}"):
        parse_amount(text, currency)
