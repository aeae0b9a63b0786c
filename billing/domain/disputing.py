"""Until when a charge can be disputed, and what of an invoice nobody goes after meanwhile."""

from collections import Counter
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


def rests(answered: Iterable[tuple[int, int, int]]) -> int:
    """Return what of some lines waits for its days after an answer, of (line, disputed and not given back, left).

    A line that was disputed several times waits with no more than is left of it.
    """
    waits, most = Counter[int](), dict[int, int]()
    for line, kept, left in answered:
        waits[line] += max(kept, 0)
        most[line] = left
    return sum(min(amount, most[line]) for line, amount in waits.items())
