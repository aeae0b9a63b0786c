"""Conversion of amounts to and from Stripe's units (B22)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.domain.money import EXPONENTS
from billing.domain.stripe_amounts import (
    DECIMALS,
    LAST_DIGIT_ZERO,
    UnsupportedCurrency,
    from_stripe,
    lines_to_stripe,
    to_stripe,
)

BOTH = sorted(DECIMALS.keys() & EXPONENTS.keys())


@pytest.mark.parametrize("currency", sorted(DECIMALS))
def test_amounts_are_sent_with_stripes_decimals_or_the_currency_is_refused(currency: str) -> None:
    """One unit of it is written as one unit with Stripe's decimals, whatever ours are."""
    if currency not in EXPONENTS:
        with pytest.raises(UnsupportedCurrency, match=f"How many decimals {currency} has"):
            to_stripe(1, currency)
        return
    one = 10 ** EXPONENTS[currency]
    assert to_stripe(12 * one, currency) == 12 * 10 ** DECIMALS[currency]


@pytest.mark.parametrize(
    ("currency", "minor", "sent"),
    [
        ("EUR", 1234, 1234),
        ("JPY", 500, 500),
        ("ISK", 500, 50000),
        ("UGX", 7, 700),
        ("HUF", 12300, 12300),
        ("KWD", 5124, 5120),
        ("KWD", 5129, 5120),
        ("KWD", -5129, -5120),
        ("TND", 9, 0),
    ],
)
def test_currencies_with_special_stripe_rules_are_converted(currency: str, minor: int, sent: int) -> None:
    assert to_stripe(minor, currency) == sent


@pytest.mark.parametrize("currency", ["IQD", "LYD", "XXX", "eur", ""])
def test_a_currency_unsupported_by_stripe_is_refused_by_name(currency: str) -> None:
    with pytest.raises(UnsupportedCurrency, match=f"does not collect {currency}"):
        to_stripe(100, currency)


@given(
    st.sampled_from(BOTH),
    st.lists(st.tuples(st.integers(-(10**9), 10**9), st.integers(0, 10**6)), max_size=30),
)
def test_stripe_lines_add_up_to_the_stripe_total(currency: str, amounts: list[tuple[int, int]]) -> None:
    parts = lines_to_stripe(amounts, currency)
    whole = sum(minor + tax for minor, tax in amounts)
    assert sum(part.minor + part.tax for part in parts) == to_stripe(whole, currency)


@given(st.sampled_from(BOTH), st.integers(0, 10**12))
def test_the_stripe_amount_never_exceeds_the_invoice_amount(currency: str, minor: int) -> None:
    sent, places = to_stripe(minor, currency), DECIMALS[currency]
    owed = minor * 10**places
    assert 0 <= owed - sent * 10 ** EXPONENTS[currency] < 10 ** (EXPONENTS[currency] + 1)
    if currency in LAST_DIGIT_ZERO:
        assert sent % 10 == 0
    else:
        assert owed == sent * 10 ** EXPONENTS[currency]


@pytest.mark.parametrize(
    ("currency", "amount", "minor"),
    [("EUR", 1234, 1234), ("JPY", 500, 500), ("ISK", 50000, 500), ("UGX", 750, 7), ("KWD", 5120, 5120)],
)
def test_stripe_amounts_are_converted_back_to_whole_minor_units(currency: str, amount: int, minor: int) -> None:
    assert from_stripe(amount, currency) == minor


@pytest.mark.parametrize("currency", ["AFN", "LYD", "XXX"])
def test_stripe_amounts_in_an_unknown_currency_are_refused(currency: str) -> None:
    with pytest.raises(UnsupportedCurrency):
        from_stripe(100, currency)
