"""Exact discounts and minimum spend."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.domain.discounts import add_months, amount_discount, percent_discount
from billing.domain.minimums import minimum_shortfall, prorate_minimum
from billing.domain.money import EXACT_PER_UNIT, to_minor

COIN = EXACT_PER_UNIT // 100
LINES = st.dictionaries(st.integers(0, 9), st.integers(0, 50 * COIN), max_size=6)


@given(num=st.integers(0, 10**30), percent_bp=st.integers(0, 10_000))
def test_a_percentage_discount_is_rounded_down_and_at_most_the_amount(num: int, percent_bp: int) -> None:
    off = percent_discount(num, percent_bp)
    assert 0 <= off <= num
    assert 0 <= Fraction(num * percent_bp, 10_000) - off < 1


@given(lines=LINES, minor=st.integers(0, 400))
def test_a_fixed_discount_takes_its_exact_amount_or_the_whole_total(lines: dict[int, int], minor: int) -> None:
    off = amount_discount(lines, minor, exponent=2)
    assert sum(off.values()) == min(minor * COIN, sum(lines.values()))
    assert all(0 < num <= lines[key] for key, num in off.items())
    if minor * COIN <= sum(num // COIN * COIN for num in lines.values()):
        before = sum(to_minor(num, 2) for num in lines.values())
        after = sum(to_minor(num - off.get(key, 0), 2) for key, num in lines.items())
        assert before - after == minor


def test_an_invalid_discount_is_refused() -> None:
    for percent_bp in (-1, 10_001):
        with pytest.raises(ValueError, match="hundredths"):
            percent_discount(1, percent_bp)
    with pytest.raises(ValueError, match="less than nought"):
        amount_discount({}, -1, exponent=2)


def test_months_are_added_across_the_end_of_a_year() -> None:
    assert [add_months("2026-11", months) for months in (0, 1, 2, 14)] == [
        "2026-11",
        "2026-12",
        "2027-01",
        "2028-01",
    ]


@given(minor=st.integers(1, 10**12), of=st.integers(1, 10**7), parts=st.data())
def test_a_prorated_minimum_is_rounded_once(minor: int, of: int, parts: st.DataObject) -> None:
    seconds = parts.draw(st.integers(0, of))
    assert abs(Fraction(minor * seconds, of) - prorate_minimum(minor, seconds=seconds, of=of)) <= Fraction(1, 2)
    assert prorate_minimum(minor, seconds=of, of=of) == minor
    with pytest.raises(ValueError, match="not within"):
        prorate_minimum(minor, seconds=of + 1, of=of)


@given(minimum=st.integers(0, 10**9), lines=st.integers(0, 10**9))
def test_lines_plus_shortfall_equal_the_minimum_or_the_lines(minimum: int, lines: int) -> None:
    assert lines + minimum_shortfall(minimum, lines) == max(minimum, lines)
