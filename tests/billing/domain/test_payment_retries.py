"""How long to wait for a gateway, and when to retry a declined payment."""

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
def test_a_wait_is_never_nothing_and_never_more_than_an_hour(tries: int) -> None:
    assert 5 <= backoff_s(tries) <= 3600


def test_an_invoice_nobody_tried_is_tried() -> None:
    assert is_auto_retry_due([], NOW)


def test_a_declined_one_is_tried_a_day_later_and_not_a_second_before() -> None:
    declined = [(NOW, True)]
    assert not is_auto_retry_due(declined, NOW + DAY - timedelta(seconds=1))
    assert is_auto_retry_due(declined, NOW + DAY)


def test_what_a_person_tried_counts_for_the_day() -> None:
    assert not is_auto_retry_due([(NOW, True), (NOW + DAY / 2, False)], NOW + DAY)


def test_after_five_of_its_own_it_waits_for_a_person() -> None:
    own = [(NOW + n * DAY, True) for n in range(MAX_AUTO_RETRIES)]
    assert is_auto_retry_due(own[:-1], NOW + 30 * DAY)
    assert not is_auto_retry_due(own, NOW + 30 * DAY)
    assert (next_auto_retry(own[:-1]), next_auto_retry(own)) == (NOW + (MAX_AUTO_RETRIES - 1) * DAY, None)


def test_what_people_tried_does_not_use_up_its_own() -> None:
    assert is_auto_retry_due([(NOW, False)] * 20, NOW + DAY)
