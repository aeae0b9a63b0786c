"""When an invoice is asked for: how long to wait after a silence, and when to try a declined one unasked."""

from collections.abc import Sequence
from datetime import datetime, timedelta

FIRST_WAIT_S, LONGEST_WAIT_S = 5, 3600
UNASKED_EVERY = timedelta(days=1)
MOST_UNASKED = 5  # then it waits for a person
MOST_FALLS = 8  # tries in a row that ended as nobody foresaw; then it waits for a person, too


def wait_s(tries: int) -> int:
    """Return how many seconds to wait after that many silences in a row: twice as long each time, up to an hour."""
    doubled: int = 2 ** min(max(tries, 1) - 1, 20)
    return min(FIRST_WAIT_S * doubled, LONGEST_WAIT_S)


def tries_unasked(declined: Sequence[tuple[datetime, bool]], now: datetime) -> bool:
    """Tell whether an invoice is tried unasked, after these attempts that were declined: (when, whether unasked)."""
    again = next_unasked(declined)
    return not declined or (again is not None and again <= now)


def next_unasked(declined: Sequence[tuple[datetime, bool]]) -> datetime | None:
    """Return when that is after these attempts; None when it waits for a person, or was never tried."""
    if not declined or sum(unasked for _, unasked in declined) >= MOST_UNASKED:
        return None
    return max(at for at, _ in declined) + UNASKED_EVERY
