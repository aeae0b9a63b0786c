"""Maximum cost of a lease per month."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.domain.lease_holds import (
    MAX_START_DELAY,
    cost_by_month,
    exact_from_minor,
    max_cost_by_month,
    sum_by_month,
)
from billing.domain.money import EXACT_PER_UNIT
from billing.domain.periods import Period

DAY = timedelta(days=1)
BORDER = datetime(2026, 12, 1, tzinfo=UTC)
NOVEMBER, DECEMBER, JANUARY = 11, 12, 13
MONTHS = {
    NOVEMBER: Period(BORDER - 30 * DAY, BORDER),
    DECEMBER: Period(BORDER, BORDER + 31 * DAY),
    JANUARY: Period(BORDER + 31 * DAY, BORDER + 62 * DAY),
}
EURO = 10**9


def exact_euros(amount: int) -> int:
    return amount * EXACT_PER_UNIT


def test_lease_cost_is_split_at_the_month_end() -> None:
    found = cost_by_month(BORDER - timedelta(hours=2), 5 * 3600, quantity=3, prices=[(BORDER, EURO)], months=MONTHS)
    assert found == {NOVEMBER: exact_euros(6), DECEMBER: exact_euros(9)}


def test_each_second_costs_the_price_valid_at_that_second() -> None:
    prices = [(BORDER - DAY, EURO), (BORDER - timedelta(hours=1), 3 * EURO), (BORDER + DAY, 100 * EURO)]
    found = cost_by_month(BORDER - timedelta(hours=2), 3 * 3600, quantity=1, prices=prices, months=MONTHS)
    assert found == {NOVEMBER: exact_euros(1 + 3), DECEMBER: exact_euros(3)}


def test_a_lease_of_zero_duration_costs_nothing() -> None:
    assert cost_by_month(BORDER, 0, quantity=1, prices=[(BORDER, EURO)], months=MONTHS) == {}
    assert max_cost_by_month(BORDER, 0, quantity=1, prices=[(BORDER, EURO)], months=MONTHS) == {}


def test_a_lease_queued_just_before_month_end_may_cost_in_either_month() -> None:
    now, hour = BORDER - timedelta(minutes=10), 3600
    found = max_cost_by_month(now, hour, quantity=6, prices=[(now, EURO)], months=MONTHS)
    assert found == {NOVEMBER: exact_euros(1), DECEMBER: exact_euros(6)}
    early = max_cost_by_month(BORDER - DAY, hour, quantity=6, prices=[(now, EURO)], months=MONTHS)
    assert early == {NOVEMBER: exact_euros(6)}


def test_monthly_amounts_are_added_per_month() -> None:
    assert sum_by_month({1: 2}, {}, {1: 3, 2: 4}) == {1: 5, 2: 4}


@pytest.mark.parametrize(
    ("minor", "currency", "num"), [(1, "EUR", EXACT_PER_UNIT // 100), (7, "JPY", 7 * EXACT_PER_UNIT)]
)
def test_a_limit_is_converted_exactly_in_every_currency(minor: int, currency: str, num: int) -> None:
    assert exact_from_minor(minor, currency) == num


PRICES = st.lists(st.tuples(st.integers(-(10**6), 10**7), st.integers(0, 10**10)), min_size=1, max_size=5)


@given(st.integers(-(10**6), 3 * 10**6), st.integers(1, 10**6), st.integers(1, 8), PRICES)
def test_lease_cost_counts_every_second_once_and_max_cost_covers_late_starts(
    offset: int, seconds: int, quantity: int, prices: list[tuple[int, int]]
) -> None:
    since = BORDER + timedelta(seconds=offset)
    listed = sorted((BORDER + timedelta(seconds=at), nano) for at, nano in dict(prices).items())
    found = cost_by_month(since, seconds, quantity=quantity, prices=listed, months=MONTHS)
    borders = sorted(
        {
            since,
            since + timedelta(seconds=seconds),
            *(at for at, _ in listed),
            *(m.end for m in MONTHS.values()),
        }
    )
    slow = 0
    for start, end in pairwise(borders):
        if since <= start and end <= since + timedelta(seconds=seconds):
            nano = [n for at, n in listed if at <= start][-1:] or [listed[0][1]]
            slow += int((end - start).total_seconds()) * nano[0] * quantity
    assert sum(found.values()) == slow
    worst = max_cost_by_month(since, seconds, quantity=quantity, prices=listed, months=MONTHS)
    for late in (0, 1, MAX_START_DELAY.seconds // 2, MAX_START_DELAY.seconds):
        at = since + timedelta(seconds=late)
        begun = cost_by_month(at, seconds, quantity=quantity, prices=listed[:1], months=MONTHS)
        flat = max_cost_by_month(since, seconds, quantity=quantity, prices=listed[:1], months=MONTHS)
        assert all(flat[key] >= num for key, num in begun.items())
    assert all(worst[key] >= num for key, num in found.items())
