"""Billing months and days in time zones."""

from datetime import UTC, date, datetime, timedelta, timezone
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from billing.domain.periods import Period, midnight, month_of
from tests.billing.domain.time_zones import ALL, RARE
from tests.billing.domain.zone_months import months_between

SECOND = timedelta(seconds=1)
instants = st.datetimes(datetime(1995, 1, 1), datetime(2045, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
zones = st.sampled_from(RARE) | st.sampled_from(ALL)
anchors = st.integers(min_value=1, max_value=31)


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type,misc]


@settings(max_examples=80)
@given(zones, instants, anchors)
def test_every_instant_is_in_exactly_one_month(tz: str, instant: datetime, anchor: int) -> None:
    month = month_of(tz, instant, anchor=anchor)
    assert instant in month
    assert month_of(tz, month.start, anchor=anchor) == month
    assert month_of(tz, month.end - SECOND, anchor=anchor) == month
    assert month_of(tz, month.end, anchor=anchor).start == month.end
    assert month_of(tz, month.start - SECOND, anchor=anchor).end == month.start


@settings(max_examples=20)
@given(zones, instants, st.integers(min_value=1, max_value=1500), anchors)
def test_months_have_no_gap_or_overlap(tz: str, start: datetime, days: int, anchor: int) -> None:
    end = start + timedelta(days=days)
    months = list(months_between(tz, start, end, anchor=anchor))
    assert start in months[0]
    assert end - SECOND / 10**6 in months[-1]
    assert all(before.end == after.start for before, after in pairwise(months))
    parts = [part for month in months if (part := month.intersect(Period(start, end)))]
    assert sum((part.end - part.start for part in parts), timedelta()) == end - start


def test_months_of_every_time_zone_have_27_to_32_days() -> None:
    for tz in ALL:
        for month in months_between(tz, utc(2026, 1, 15), utc(2027, 1, 15)):
            assert timedelta(days=27, hours=21) < month.end - month.start < timedelta(days=31, hours=3)


@pytest.mark.parametrize(
    ("tz", "inside", "start", "end"),
    [
        ("UTC", utc(2026, 11, 21), utc(2026, 11, 1), utc(2026, 12, 1)),
        ("Europe/Berlin", utc(2026, 10, 15), utc(2026, 9, 30, 22), utc(2026, 10, 31, 23)),
        ("America/New_York", utc(2026, 3, 1, 4, 59, 59), utc(2026, 2, 1, 5), utc(2026, 3, 1, 5)),
        ("Asia/Kathmandu", utc(2026, 5, 31, 18, 15), utc(2026, 5, 31, 18, 15), utc(2026, 6, 30, 18, 15)),
        ("Australia/Lord_Howe", utc(2026, 4, 15), utc(2026, 3, 31, 13), utc(2026, 4, 30, 13, 30)),
    ],
)
def test_a_month_starts_at_local_midnight(tz: str, inside: datetime, start: datetime, end: datetime) -> None:
    assert month_of(tz, inside) == Period(start, end)


def test_a_repeated_midnight_starts_the_month_the_second_time() -> None:
    # Clocks go back from 01:00 to 00:00 in Havana, and went back from 00:01 to 23:01 in St John's.
    assert month_of("America/Havana", utc(2026, 11, 15)).start == utc(2026, 11, 1, 5)
    october = month_of("America/St_Johns", utc(2009, 10, 15))
    assert october.end == utc(2009, 11, 1, 3, 30)
    assert month_of("America/St_Johns", utc(2009, 11, 1, 2, 30)) == october


def test_the_first_day_of_a_month_starts_with_the_month() -> None:
    for zone in ("America/Havana", "Europe/Berlin", "Asia/Beirut"):
        for month in range(1, 13):
            start = month_of(zone, utc(2026, month, 15)).start
            assert midnight(date(2026, month, 1), ZoneInfo(zone)) == start


def test_a_skipped_midnight_starts_the_month_at_the_clock_change() -> None:
    day = month_of("Pacific/Apia", utc(2012, 1, 10), anchor=30)  # 30 December 2011 never came to Samoa
    assert day.start == utc(2011, 12, 30, 10)
    assert month_of("Pacific/Apia", utc(2011, 12, 30, 9, 59, 59), anchor=30).end == day.start


def test_an_anchor_day_beyond_the_month_end_falls_on_the_last_day() -> None:
    starts = [m.start for m in months_between("UTC", utc(2028, 1, 31), utc(2028, 6, 1), anchor=31)]
    assert starts == [
        utc(2028, 1, 31),
        utc(2028, 2, 29),
        utc(2028, 3, 31),
        utc(2028, 4, 30),
        utc(2028, 5, 31),
    ]


@pytest.mark.parametrize("anchor", [0, 32, -1])
def test_an_invalid_anchor_day_is_refused(anchor: int) -> None:
    with pytest.raises(ValueError, match="months begin on day 1 to 31"):
        month_of("UTC", utc(2026, 1, 1), anchor=anchor)


def test_months_start_on_the_first_by_default() -> None:
    starts = [m.start for m in months_between("UTC", utc(2026, 12, 15), utc(2027, 1, 2))]
    assert starts == [utc(2026, 12, 1), utc(2027, 1, 1)]


def test_an_empty_interval_has_no_months() -> None:
    assert list(months_between("UTC", utc(2026, 1, 1), utc(2026, 1, 1))) == []


@settings(max_examples=40)
@given(st.lists(instants, min_size=4, max_size=4, unique=True), instants)
def test_an_intersection_contains_exactly_the_common_instants(ends: list[datetime], probe: datetime) -> None:
    one, other = Period(*sorted(ends[:2])), Period(*sorted(ends[2:]))
    both = one.intersect(other)
    assert both == other.intersect(one)
    for instant in (probe, *ends):
        assert (instant in one and instant in other) == (both is not None and instant in both)


def test_the_end_of_a_period_is_exclusive() -> None:
    first, second = Period(utc(2026, 1, 1), utc(2026, 1, 2)), Period(utc(2026, 1, 2), utc(2026, 1, 3))
    assert first.intersect(second) is None
    assert utc(2026, 1, 2) not in first
    assert utc(2026, 1, 2) in second
    assert first < second


def test_a_day_has_86_400_seconds_and_a_fraction_cannot_be_billed() -> None:
    assert Period(utc(2026, 1, 1), utc(2026, 1, 2)).seconds == 86_400
    with pytest.raises(ValueError, match="not a whole number of seconds"):
        _ = Period(utc(2026, 1, 1), utc(2026, 1, 1) + SECOND * 3 / 2).seconds


@pytest.mark.parametrize("end", [utc(2026, 1, 1), utc(2025, 12, 31)])
def test_a_period_that_does_not_end_after_its_start_is_refused(end: datetime) -> None:
    with pytest.raises(ValueError, match="must end after it starts"):
        Period(utc(2026, 1, 1), end)


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="has no time zone"):
        Period(utc(2026, 1, 1), datetime(2026, 1, 2))  # noqa: DTZ001


def test_a_period_is_converted_to_utc() -> None:
    ahead = timezone(timedelta(hours=1))
    found = Period(utc(2026, 1, 1), datetime(2026, 1, 2, 1, tzinfo=ahead))
    assert (found.end, found.end.tzinfo) == (utc(2026, 1, 2), UTC)
