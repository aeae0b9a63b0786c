"""Explanations of invoice lines: usage, price and amount."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.domain.line_explanations import (
    UsagePiece,
    explain_line,
    format_computation,
    format_exact,
    format_fraction,
)
from billing.domain.money import EXACT_PER_UNIT, Money, half_up
from billing.domain.periods import Period

START = datetime(2026, 11, 1, tzinfo=UTC)


def usage_piece(start: int, seconds: int, quantity: int = 1) -> UsagePiece:
    begin = START + timedelta(seconds=start)
    return UsagePiece(Period(begin, begin + timedelta(seconds=seconds)), quantity)


def test_a_line_computation_is_written_as_arithmetic() -> None:
    assert format_computation(2_676_186, nano_per_hour=1_340_000_000, currency="EUR") == (
        "2,676,186 s × 1.340000000 €/h ÷ 3600 s/h = 996.135900 € → 996.14 €"
    )


@pytest.mark.parametrize(
    ("currency", "end"),
    [("JPY", "= 1,234.500000 ¥ → 1,235 ¥"), ("KWD", "= 1,234.500000 KWD → 1,234.500 KWD")],
)
def test_the_last_step_rounds_to_the_currencys_minor_unit(currency: str, end: str) -> None:
    assert format_computation(1800, nano_per_hour=2469 * 10**9, currency=currency).endswith(end)


def test_several_usage_periods_are_listed_added_and_priced_once() -> None:
    explained = explain_line(
        [usage_piece(0, 60), usage_piece(120, 30, quantity=2)], nano_per_hour=3_600 * 10**7, currency="EUR"
    )
    assert explained.steps == (
        "2026-11-01 00:00:00 UTC to 2026-11-01 00:01:00 UTC: 60 s",
        "2026-11-01 00:02:00 UTC to 2026-11-01 00:02:30 UTC: 30 s × 2 = 60 s",
        "2 stretches of use together: 120 s",
        "120 s × 36.000000000 €/h ÷ 3600 s/h = 1.200000 € → 1.20 €",
    )
    assert (explained.unit_seconds, explained.amount) == (120, Money(120, "EUR"))


def test_one_usage_period_needs_no_addition() -> None:
    explained = explain_line([usage_piece(0, 3600)], nano_per_hour=10**9, currency="EUR")
    assert len(explained.steps) == 2


def test_a_line_without_usage_explains_zero() -> None:
    explained = explain_line([], nano_per_hour=10**9, currency="EUR")
    assert explained.steps == ("0 s × 1.000000000 €/h ÷ 3600 s/h = 0.000000 € → 0.00 €",)


@pytest.mark.parametrize(
    ("exact", "text"),
    [
        (EXACT_PER_UNIT, "1.000000"),
        (EXACT_PER_UNIT // 2, "0.500000"),
        (-EXACT_PER_UNIT // 2, "-0.500000"),
        (EXACT_PER_UNIT // 3, "0.333333…"),
        (9, "0.0000000000025"),
        (1, "0.000000…"),
        (1000 * EXACT_PER_UNIT + 36_000, "1,000.00000001"),
    ],
)
def test_an_exact_amount_shows_all_decimals_or_marks_them_as_truncated(exact: int, text: str) -> None:
    assert format_exact(exact) == text


@given(st.integers(min_value=-(10**20), max_value=10**20))
def test_rounding_the_displayed_amount_gives_the_charged_amount(exact: int) -> None:
    text = format_exact(exact).rstrip("…").replace(",", "")
    decimals = len(text.partition(".")[2])
    shown = half_up(int(text.replace(".", "")), 10 ** (decimals - 2))
    assert shown == Money.of_exact(exact, "EUR").minor


def test_an_exact_amount_is_also_given_as_a_fraction() -> None:
    text = format_fraction(2_676_186 * 1_340_000_000)
    assert text == "3,586,089,240,000,000 / 3,600,000,000,000"
    assert format_exact(2_676_186 * 1_340_000_000) == "996.135900"
