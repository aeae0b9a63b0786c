"""Formatting of money, durations and times."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from broker.domain.geometry.host_resources import HostResources
from web.ui import formatting

NOON = datetime(2026, 11, 19, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("minor", "currency", "written"),
    [
        (164218, "EUR", "€1,642.18"),
        (5, "EUR", "€0.05"),
        (-4981, "EUR", "−€49.81"),
        (1234567, "JPY", "¥1,234,567"),
        (1500, "KWD", "KWD\N{NO-BREAK SPACE}1.500"),
        (0, "USD", "$0.00"),
    ],
)
def test_money_is_written_with_its_sign_its_currency_and_all_its_decimals(
    minor: int, currency: str, written: str
) -> None:
    assert formatting.format_money(minor, currency) == written


@pytest.mark.parametrize(("minor", "written"), [(266049, "€2,660"), (266050, "€2,661"), (-266050, "−€2,661")])
def test_fewer_decimals_round_half_away_from_zero(minor: int, written: str) -> None:
    assert formatting.format_money(minor, "EUR", 0) == written


def test_a_price_below_a_cent_does_not_read_as_free() -> None:
    assert formatting.format_price(1_550_000_000, "EUR") == "€1.55"
    assert formatting.format_price(1_200_000, "EUR") == "€0.0012"
    assert formatting.format_price(0, "EUR") == "€0.00"


@pytest.mark.parametrize(
    ("seconds", "two_units", "one_unit"),
    [
        (8.6, "8.6 s", "8.6 s"),
        (42, "42 s", "42 s"),
        (1080, "18 min", "18 min"),
        (11340, "3 h 09 min", "3 h"),
        (86400, "24 h 00 min", "24 h"),
        (86400 * 17 + 3600 * 5, "17 d 5 h", "17 d"),
        (-5, "0 s", "0 s"),
    ],
)
def test_a_duration_is_written_in_two_units_or_in_one(seconds: float, two_units: str, one_unit: str) -> None:
    assert formatting.format_duration(seconds) == two_units
    assert formatting.format_duration(timedelta(seconds=seconds), tight=True) == one_unit


def test_a_time_omits_the_date_of_today_and_the_current_year() -> None:
    assert formatting.format_moment(NOON + timedelta(hours=3), now=NOON) == "15:00"
    assert formatting.format_moment(NOON - timedelta(days=36), now=NOON) == "14 Oct 12:00"
    assert formatting.format_moment(NOON - timedelta(days=400), now=NOON) == "15 Oct 2025 12:00"
    assert formatting.format_moment(NOON, now=None) == "19 Nov 2026 12:00"


def test_a_time_is_formatted_in_the_tenants_time_zone() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    assert formatting.format_moment(NOON, now=NOON, zone=berlin, seconds=True) == "13:00:00"
    late = NOON.replace(hour=23, minute=30)
    assert formatting.format_moment(late, now=NOON, zone=berlin) == "20 Nov 00:30", "the tenant's day, not UTC's"


def test_a_relative_time_shows_its_direction() -> None:
    assert formatting.format_relative(NOON + timedelta(minutes=18), NOON) == "in 18 min"
    assert formatting.format_relative(NOON - timedelta(days=3), NOON) == "3 d 0 h ago"


@pytest.mark.parametrize(
    ("amounts", "written"),
    [
        (HostResources(12_000, 98_304, 204_800), "12 CPUs, 96 GiB memory, 200 GiB scratch"),
        (HostResources(1000, 256, 0), "1 CPU, 256 MiB memory"),
        (HostResources(3420, 0, 1024), "3.42 CPUs, 1 GiB scratch"),
        (HostResources(), ""),
    ],
)
def test_resources_name_only_known_amounts(amounts: HostResources, written: str) -> None:
    assert formatting.format_resources(amounts) == written
