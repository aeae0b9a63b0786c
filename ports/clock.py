"""Clocks: database time, a settable clock and monotonic time.

Entry points (views, tasks, commands) read the clock once and pass `now` down; no service reads it.
"""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Protocol

from django.db import connection

RESYNC_AFTER_S = 10.0


class Clock(Protocol):
    """Source of the current time as an aware UTC datetime."""

    def now(self) -> datetime: ...


class DatabaseClock:
    """PostgreSQL's clock, extrapolated with the monotonic clock between two readings.

    All processes of the product therefore agree on the time to within a round trip, whatever their hosts'
    clocks say, and an entry point needs no query of its own to read it.
    """

    def __init__(self) -> None:
        self._read_at = -math.inf
        self._base = datetime.min.replace(tzinfo=UTC)

    def now(self) -> datetime:
        elapsed = time.monotonic() - self._read_at
        if elapsed >= RESYNC_AFTER_S:
            with connection.cursor() as cursor:
                cursor.execute("SELECT clock_timestamp()")
                self._base = cursor.fetchone()[0]
            self._read_at, elapsed = time.monotonic(), 0.0
        return self._base + timedelta(seconds=elapsed)


class SettableClock:
    """Clock that stands still until it is set, for simulation, replay and tests."""

    def __init__(self, at: datetime) -> None:
        self.at = at

    def now(self) -> datetime:
        return self.at


_clock: Clock = DatabaseClock()


def now() -> datetime:
    """Return the current time, aware and in UTC."""
    return _clock.now()


def month_start(at: datetime) -> datetime:
    """Return the start of the calendar month (UTC), in which GPU-hours are counted."""
    return at.replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def monotonic() -> float:
    """Return monotonic seconds, for measuring durations."""
    return time.monotonic()


def milliseconds() -> int:
    """Return this host's wall clock in ms.

    Only for ids that sort roughly by age, and for the age of messages.
    """
    return time.time_ns() // 1_000_000


def sleep(seconds: float) -> None:
    """Sleep; only for loops in management commands."""
    time.sleep(seconds)


@contextmanager
def frozen_at(at: datetime) -> Iterator[SettableClock]:
    """Replace the clock by one fixed at `at` until the block ends."""
    global _clock
    before, _clock = _clock, SettableClock(at)
    try:
        yield _clock
    finally:
        _clock = before
