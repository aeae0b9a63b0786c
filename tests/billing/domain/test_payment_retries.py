"""Gateway backoff and automatic retries of declined payments."""

from datetime import UTC, datetime, timedelta

import pytest

from billing.domain.payment_retries import MAX_AUTO_RETRIES, backoff_s, is_auto_retry_due, next_auto_retry

NOW = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
DAY = timedelta(days=1)


def test_the_backoff_doubles_up_to_an_hour() -> None:
    assert [backoff_s(tries) for tries in range(1, 12)] == [
        5,
        10,
        20,
        40,
        80,
        160,
        320,
        640,
        1280,
        2560,
        3600,
    ]


@pytest.mark.parametrize("tries", [0, 1, 10**9])
def test_the_backoff_is_between_five_seconds_and_one_hour(tries: int) -> None:
    assert 5 <= backoff_s(tries) <= 3600


def test_an_invoice_without_payment_attempts_is_due_for_collection() -> None:
    assert is_auto_retry_due([], NOW)


def test_a_declined_payment_is_retried_after_exactly_one_day() -> None:
    declined = [(NOW, True)]
    assert not is_auto_retry_due(declined, NOW + DAY - timedelta(seconds=1))
    assert is_auto_retry_due(declined, NOW + DAY)


def test_a_manual_attempt_delays_the_next_automatic_retry() -> None:
    assert not is_auto_retry_due([(NOW, True), (NOW + DAY / 2, False)], NOW + DAY)


def test_automatic_retries_end_after_the_maximum() -> None:
    own = [(NOW + n * DAY, True) for n in range(MAX_AUTO_RETRIES)]
    assert is_auto_retry_due(own[:-1], NOW + 30 * DAY)
    assert not is_auto_retry_due(own, NOW + 30 * DAY)
    assert (next_auto_retry(own[:-1]), next_auto_retry(own)) == (NOW + (MAX_AUTO_RETRIES - 1) * DAY, None)


def test_manual_attempts_do_not_count_towards_the_maximum_retries() -> None:
    assert is_auto_retry_due([(NOW, False)] * 20, NOW + DAY)
