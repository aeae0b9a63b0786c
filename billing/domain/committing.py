"""Which seconds a commitment covers: in each of them, as many active units as were committed to.

Where more are active, the units of the lease that was asked for first are covered first, which its name says: names
are made in the order of time. A lease is active in one stretch at a time, so there are never two of one to choose from.
Moments are whole seconds, amounts unit-seconds: integers throughout.
"""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True, order=True)
class Stretch:
    """So many units of a lease, active during [start, end); `key` is what it is to whoever asks."""

    lease: str
    start: int
    end: int
    units: int
    key: tuple[object, ...] = ()


class Free:
    """How many committed units are free in each second of a commitment: steps, none as high as its neighbours."""

    def __init__(self, start: int, end: int, units: int) -> None:
        self._at = [start, end]
        self._free = [units, 0]  # from each moment on; behind the last there are none

    def take(self, start: int, end: int, units: int) -> int:
        """Let up to so many units be taken in each second; return how many unit-seconds were."""
        start, end = max(start, self._at[0]), min(end, self._at[-1])
        if start >= end:
            return 0
        first, last = self._cut(start), self._cut(end)
        taken = 0
        for n in range(first, last):
            part = min(units, self._free[n])
            taken += part * (self._at[n + 1] - self._at[n])
            self._free[n] -= part
        self._join(first, last)
        return taken

    @property
    def left(self) -> int:
        """How many unit-seconds nobody took."""
        return sum(free * (end - at) for (at, end), free in zip(pairwise(self._at), self._free, strict=False))

    def _cut(self, at: int) -> int:
        """Return which step begins at a moment, after one does."""
        n = bisect_left(self._at, at)
        if self._at[n] != at:
            self._at.insert(n, at)
            self._free.insert(n, self._free[n - 1])
        return n

    def _join(self, first: int, last: int) -> None:
        """Make one of steps of the same height: where all is taken, the next who asks has one step to look at."""
        since, until = max(first - 1, 0), min(last + 1, len(self._at) - 1)
        kept = [n for n in range(since, until) if n == since or self._free[n] != self._free[n - 1]]
        self._at[since:until] = [self._at[n] for n in kept]
        self._free[since:until] = [self._free[n] for n in kept]


def covered(stretches: Iterable[Stretch], free: Free) -> dict[tuple[object, ...], int]:
    """Return how many unit-seconds of each stretch are covered; those of none are left out."""
    found = dict[tuple[object, ...], int]()
    for each in sorted(stretches):
        if taken := free.take(each.start, each.end, each.units):
            found[each.key] = found.get(each.key, 0) + taken
    return found
