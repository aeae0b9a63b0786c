"""Hourly cost, line amounts, holds and price precedence."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from billing.domain.money import EXACT_PER_UNIT, EXPONENTS, exponent_of, to_minor
from billing.domain.pricing import (
    cap_prices,
    hold_amount,
    hourly_cost,
    line_amount,
    merge_in_force,
    usage_cost,
)

ZERO, SECOND = datetime(2026, 11, 1, tzinfo=UTC), timedelta(seconds=1)
seconds = st.integers(min_value=0, max_value=10**8)
quantities = st.integers(min_value=0, max_value=64)
prices = st.integers(min_value=0, max_value=10**12)
currencies = st.sampled_from(sorted(EXPONENTS))


def test_hourly_cost_is_price_times_quantity() -> None:
    assert hourly_cost(1_340_000_000, 2) == 2_680_000_000


def test_an_hour_costs_its_hourly_price() -> None:
    assert usage_cost(3600, quantity=1, nano_per_hour=2_000_000_000) == 2 * EXACT_PER_UNIT


@settings(max_examples=40)
@given(seconds, seconds, quantities, prices)
def test_usage_split_in_two_costs_the_same(one: int, other: int, quantity: int, price: int) -> None:
    whole = usage_cost(one + other, quantity=quantity, nano_per_hour=price)
    assert whole == sum(usage_cost(part, quantity=quantity, nano_per_hour=price) for part in (one, other))


@settings(max_examples=40)
@given(seconds, quantities, prices, currencies)
def test_the_held_amount_always_covers_the_charge(time: int, quantity: int, price: int, currency: str) -> None:
    charged = to_minor(usage_cost(time, quantity=quantity, nano_per_hour=price), exponent_of(currency))
    held = hold_amount(time, quantity=quantity, nano_per_hour=price, currency=currency)
    assert charged <= held <= charged + 1


@pytest.mark.parametrize(
    ("time", "quantity", "price", "word"),
    [(-1, 1, 1, "seconds"), (1, -1, 1, "quantity"), (1, 1, -1, "nano_per_hour")],
)
def test_a_negative_input_is_refused_by_name(time: int, quantity: int, price: int, word: str) -> None:
    with pytest.raises(ValueError, match=f"{word} is -1"):
        usage_cost(time, quantity=quantity, nano_per_hour=price)


@settings(max_examples=40)
@given(seconds, quantities, prices, currencies)
def test_a_line_amount_is_the_rounded_cost_and_at_most_the_hold(
    length: int, quantity: int, price: int, currency: str
) -> None:
    terms: dict[str, Any] = {"quantity": quantity, "nano_per_hour": price, "currency": currency}
    capped, held = line_amount(length, **terms), hold_amount(length, **terms)
    exact = usage_cost(length, quantity=quantity, nano_per_hour=price)
    assert capped == to_minor(exact, exponent_of(currency))
    assert held - 1 <= capped <= held


def intervals_between(borders: list[int], *, last: bool) -> list[tuple[datetime, datetime | None, int]]:
    """Return the values valid between every two borders."""
    pairs = list(zip(borders[::2], borders[1::2], strict=False))
    found = [(ZERO + begin * SECOND, ZERO + end * SECOND, begin) for begin, end in pairs]
    return [*found[:-1], (found[-1][0], None, found[-1][2])] if found and last else list(found)


def valid_at(some: list[tuple[datetime, datetime | None, int]], second: int) -> list[int]:
    at = ZERO + second * SECOND
    return [what for since, until, what in some if since <= at and (until is None or at < until)]


borders_of_prices = st.lists(st.integers(0, 30), max_size=8, unique=True).map(sorted)


@given(borders_of_prices, st.booleans(), borders_of_prices, st.booleans())
def test_a_tenant_price_applies_where_valid_and_the_list_price_elsewhere(
    first: list[int], open_: bool, second: list[int], for_good: bool
) -> None:
    listed, own = (
        intervals_between(first, last=open_),
        [(s, u, -1 - w) for s, u, w in intervals_between(second, last=for_good)],
    )
    found = merge_in_force(listed, own)
    assert [since for since, _, _ in found] == sorted(since for since, _, _ in found)
    for at in range(32):
        assert valid_at(found, at) == (valid_at(own, at) or valid_at(listed, at))


@given(borders_of_prices, st.booleans(), st.integers(0, 30), st.integers(0, 30))
def test_a_quote_caps_every_price_and_fills_the_gaps(borders: list[int], open_: bool, most: int, since: int) -> None:
    in_force = intervals_between(borders, last=open_)
    found = cap_prices(in_force, most, lambda nano: nano, since=ZERO + since * SECOND)
    for at in range(since, 40):
        assert valid_at(found, at) == [min([most, *valid_at(in_force, at)])]
    assert all(start >= ZERO + since * SECOND for start, _, _ in found)
