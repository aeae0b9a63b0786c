"""Consecutive months of a time zone."""

from collections.abc import Iterator
from datetime import datetime

from billing.domain.periods import Period, month_of


def months_between(tz: str, start: datetime, end: datetime, *, anchor: int = 1) -> Iterator[Period]:
    """Yield every month of a time zone that overlaps [start, end), in order."""
    while start < end:
        month = month_of(tz, start, anchor=anchor)
        yield month
        start = month.end
