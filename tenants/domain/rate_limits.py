"""Rate limits: how many requests a caller may send in a window."""

from dataclasses import dataclass
from datetime import datetime

MAX_BLOCK, BLOCKS_OF_A_WINDOW = 200, 50


@dataclass(frozen=True, slots=True)
class RateLimit:
    """At most `amount` requests in each window.

    Windows begin at whole multiples of their seconds.
    """

    name: str
    amount: int
    window_s: int = 60

    @property
    def block(self) -> int:
        """Return how many requests a process takes from the shared count at once."""
        return min(max(self.amount // BLOCKS_OF_A_WINDOW, 1), MAX_BLOCK)

    def window_at(self, now: datetime) -> int:
        """Return the number of the window that a moment is in."""
        return int(now.timestamp()) // self.window_s

    def seconds_left(self, now: datetime) -> int:
        """Return the whole seconds until the next window begins, at least one."""
        return self.window_s - int(now.timestamp()) % self.window_s

    def granted(self, used: int) -> int:
        """Return how many of a block are allowed that brought the count to `used`."""
        return min(max(self.amount - (used - self.block), 0), self.block)


@dataclass(frozen=True, slots=True)
class Charge:
    """One request counted against a limit; `key` says whose."""

    limit: RateLimit
    key: str


@dataclass(slots=True)
class WindowCount:
    """A count in a window, as one process knows it."""

    window: int
    left: int = 0  # of its blocks
    used: int = 0  # the shared count


class RequestCounts:
    """Counts of one process, by limit and key; not safe for threads by itself."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], WindowCount] = {}

    def __len__(self) -> int:
        return len(self._counts)

    def _find(self, charge: Charge, now: datetime) -> WindowCount | None:
        count = self._counts.get((charge.limit.name, charge.key))
        return count if count and count.window == charge.limit.window_at(now) else None

    def is_exceeded(self, charge: Charge, now: datetime) -> bool:
        """Return whether the limit is known to be used up in this window."""
        count = self._find(charge, now)
        return bool(count and count.left <= 0 and count.used >= charge.limit.amount)

    def remaining(self, charge: Charge, now: datetime) -> int:
        """Return how many more requests this process would let in."""
        count = self._find(charge, now)
        return max(charge.limit.amount - count.used, 0) + count.left if count else charge.limit.amount

    def spend(self, charge: Charge, now: datetime) -> bool:
        """Count a request; return False if a block must be taken for it."""
        count = self._find(charge, now)
        if not count or count.left <= 0:
            return False
        count.left -= 1
        return True

    def add_block(self, charge: Charge, used: int, now: datetime) -> None:
        """Note a block taken for one request, which brought the shared count to `used`."""
        count = self._find(charge, now)
        if not count:
            count = self._counts[(charge.limit.name, charge.key)] = WindowCount(charge.limit.window_at(now))
        count.used = max(count.used, used)
        count.left += max(charge.limit.granted(used) - 1, 0)

    def forget(self) -> None:
        """Drop all counts; what was taken and not used is lost until its window ends."""
        self._counts.clear()
