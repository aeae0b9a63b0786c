"""Retry schedule for collecting an invoice through a payment gateway.

A call that got no answer is repeated with exponential back-off. A declined payment is tried again once a
day, a few times, without anybody asking for it.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

FIRST_BACKOFF_S, MAX_BACKOFF_S = 5, 3600
AUTO_RETRY_INTERVAL = timedelta(days=1)
MAX_AUTO_RETRIES = 5  # after these a person has to retry
MAX_UNEXPECTED_FAILURES = 8  # consecutive unexpected failures; after these a person has to retry


def backoff_s(tries: int) -> int:
    """Return the seconds to wait after this many unanswered calls in a row.

    The wait doubles with each call, up to one hour.
    """
    doubled: int = 2 ** min(max(tries, 1) - 1, 20)
    return min(FIRST_BACKOFF_S * doubled, MAX_BACKOFF_S)


def is_auto_retry_due(declined: Sequence[tuple[datetime, bool]], now: datetime) -> bool:
    """Return whether an automatic attempt is due now.

    `declined` lists the earlier declined attempts as (time, whether it was automatic). The first attempt
    is always due.
    """
    again = next_auto_retry(declined)
    return not declined or (again is not None and again <= now)


def next_auto_retry(declined: Sequence[tuple[datetime, bool]]) -> datetime | None:
    """Return when the next automatic attempt is due.

    None when there was no attempt yet, or when the automatic attempts are used up and a person has to
    retry.
    """
    if not declined or sum(unasked for _, unasked in declined) >= MAX_AUTO_RETRIES:
        return None
    return max(at for at, _ in declined) + AUTO_RETRY_INTERVAL
