"""Time. Doors read it once and hand `now` down; nothing below a door asks for it."""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Protocol

from django.db import connection

RESYNC_AFTER_S = 10.0


class Clock(Protocol):
    """Tells the present moment as an aware UTC datetime."""

    def now(self) -> datetime: ...


class DatabaseClock:
    """PostgreSQL's clock, carried forward by the monotonic clock between two readings.

    Every process of the product then agrees on the time to within a round trip, whatever the hosts'
    wall clocks say, and a door costs no query of its own.
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


class SetClock:
    """A clock that stands still until it is set: simulation, replay and tests."""

    def __init__(self, at: datetime) -> None:
        self.at = at

    def now(self) -> datetime:
        return self.at


_clock: Clock = DatabaseClock()


def now() -> datetime:
    """Return the present moment, aware and in UTC."""
    return _clock.now()


def monotonic() -> float:
    """Return seconds that only ever grow, for measuring how long something took."""
    return time.monotonic()


def milliseconds() -> int:
    """Return this host's wall clock; only good for ids that sort roughly by age."""
    return time.time_ns() // 1_000_000


def sleep(seconds: float) -> None:
    """Wait; only loops of commands may."""
    time.sleep(seconds)


@contextmanager
def standing_at(at: datetime) -> Iterator[SetClock]:
    """Replace the clock by one that stands at `at` until the block ends."""
    global _clock
    before, _clock = _clock, SetClock(at)
    try:
        yield _clock
    finally:
        _clock = before
