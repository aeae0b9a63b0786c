"""The time zones that a tenant may choose."""

from zoneinfo import available_timezones

import pytest

from tenants.domain import time_zones

ZONES_WITHOUT_CITY = [
    "CET", "EET", "MET", "WET", "EST", "MST", "HST", "EST5EDT", "CST6CDT", "MST7MDT", "PST8PDT", "GMT", "UCT",
    "Zulu", "Etc/UTC", "Etc/GMT+5", "Factory", "US/Pacific", "Canada/Central", "Brazil/East", "Mexico/General",
    "Chile/Continental", "Japan", "GB", "NZ", "Australia/NSW", "Australia/West",
]  # fmt: skip


@pytest.mark.parametrize("name", ZONES_WITHOUT_CITY)
def test_a_time_zone_without_a_city_is_refused(name: str) -> None:
    assert name not in time_zones.permitted_zones()
    assert name in time_zones.time_zone_error(name)


@pytest.mark.parametrize(
    "name", ["UTC", "Europe/Berlin", "America/Indiana/Knox", "Australia/Lord_Howe", "Asia/Calcutta"]
)
def test_city_time_zones_and_utc_are_accepted(name: str) -> None:
    assert time_zones.time_zone_error(name) == ""


@pytest.mark.parametrize("name", ["", "Mars/Base", "Europe", "europe/berlin", "../etc/passwd", "x" * 500])
def test_an_unknown_time_zone_is_refused_in_a_short_sentence(name: str) -> None:
    assert time_zones.time_zone_error(name).endswith("is not a time zone.")
    assert len(time_zones.time_zone_error(name)) < 100


def test_every_permitted_time_zone_is_available() -> None:
    assert time_zones.permitted_zones() <= available_timezones() | {time_zones.UTC}
    assert len(time_zones.permitted_zones()) > 400
