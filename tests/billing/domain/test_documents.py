"""Formatting of prices, rates and days in documents."""

from zoneinfo import ZoneInfo

import pytest

from billing.domain.documents import format_day, format_day_range, format_percent, format_rate, group_rows
from tests.billing.histories import utc

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("nano", "currency", "shown"),
    [
        (1_340_000_000, "EUR", "€1.34"),
        (237_500_000, "EUR", "€0.2375"),
        (1, "EUR", "€0.000000001"),
        (2_000_000_000_000, "USD", "$2,000.00"),
        (180_000_000_000, "JPY", "¥180"),
        (180_500_000_000, "JPY", "¥180.5"),
        (500_000_000, "KWD", "KWD\xa00.500"),
        (0, "EUR", "€0.00"),
    ],
)
def test_a_price_is_formatted_with_all_significant_digits(nano: int, currency: str, shown: str) -> None:
    assert format_rate(nano, currency) == shown


@pytest.mark.parametrize(("bp", "shown"), [(1900, "19 %"), (550, "5.5 %"), (0, "0 %"), (1, "0.01 %"), (2000, "20 %")])
def test_a_tax_rate_is_formatted_in_percent(bp: int, shown: str) -> None:
    assert format_percent(bp) == shown


@pytest.mark.parametrize(
    ("start", "end", "shown"),
    [
        ("2026-09-30 22:00:00", "2026-10-31 23:00:00", "1 – 31 October 2026"),
        ("2026-09-29 22:00:00", "2026-10-31 23:00:00", "30 September – 31 October 2026"),
        ("2025-12-30 23:00:00", "2026-01-31 23:00:00", "31 December 2025 – 31 January 2026"),
        ("2026-10-10 22:00:00", "2026-10-11 22:00:00", "11 October 2026"),
    ],
)
def test_a_day_range_is_formatted_in_its_time_zone(start: str, end: str, shown: str) -> None:
    assert format_day_range(utc(start), utc(end), BERLIN) == shown
    assert format_day(utc("2026-10-31 23:30:00"), BERLIN) == "1 November 2026"


def test_rows_are_grouped_by_name_in_order_of_appearance() -> None:
    rows = [("b", ("1",), 3), ("a", ("2",), 4), ("b", ("3",), 5)]
    assert group_rows(rows) == [("b", [("1",), ("3",)], 8), ("a", [("2",)], 4)]
