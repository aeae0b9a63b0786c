"""Until when a charge can be disputed, and what of an invoice nobody goes after meanwhile."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from billing.domain.periods import midnight


def last_moment(final_at: datetime, zone: ZoneInfo, *, days: int) -> datetime:
    """Return before when its lines can be disputed: until the end of so many days after the day it became final on.

    Days are those of the time zone, whether they have 23, 24 or 25 hours.
    """
    return midnight(final_at.astimezone(zone).date() + timedelta(days=days + 1), zone)


def undisputed(due: int, open_: Iterable[int]) -> int:
    """Return what of an amount that is due may be gone after: all that no open dispute is about."""
    return max(due - sum(open_), 0)
