"""Coverage of usage by a commitment: which active unit-seconds the committed units pay for.

In every second as many active units are covered as were committed to; several commitments are used in
their order, each for what those before it left. Where more are active, the
dearest is covered first; only quotes make prices differ. At the same price it is the lease that was
requested first; lease ids sort by time of creation. A lease has one active interval at a time, so two
intervals of one lease never compete.

Times are whole seconds and amounts are unit-seconds: integers throughout.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

Span = tuple[int, int, int]  # start, end, units
Coverage = dict[tuple[object, ...], int]  # unit-seconds by key


@dataclass(frozen=True, slots=True, order=True)
class ActiveUnits:
    """Units of one lease that are active during [start, end).

    `key` is the caller's own identifier of the interval.
    """

    lease: str
    start: int
    end: int
    units: int
    key: tuple[object, ...] = ()
    nano_per_hour: int = 0

    @property
    def rank(self) -> tuple[int, "ActiveUnits"]:
        """Its place in the order of coverage."""
        return -self.nano_per_hour, self


class FreeUnits:
    """Committed units that are still free in each second of a commitment.

    Kept as a step function; neighbouring steps never have the same height.
    """

    def __init__(self, start: int, end: int, units: int) -> None:
        self._at = [start, end]
        self._free = [units, 0]  # from each time on; none after the last

    def take(self, start: int, end: int, units: int, rest: list[Span] | None = None) -> int:
        """Take up to `units` in each second of [start, end) and return the unit-seconds taken.

        What is not taken is appended to `rest`.
        """
        whole = start, end
        start, end = max(start, self._at[0]), min(end, self._at[-1])
        if start >= end:
            if rest is not None:
                rest.append((*whole, units))
            return 0
        first, last = self._cut(start), self._cut(end)
        taken = 0
        for n in range(first, last):
            part = min(units, self._free[n])
            taken += part * (self._at[n + 1] - self._at[n])
            self._free[n] -= part
            if rest is not None and part < units:
                rest.append((self._at[n], self._at[n + 1], units - part))
        if rest is not None:
            rest += [(at, until, units) for at, until in ((whole[0], start), (end, whole[1])) if at < until]
        self._join(first, last)
        return taken

    @property
    def left(self) -> int:
        """The unit-seconds that were not taken."""
        return sum(free * (end - at) for (at, end), free in zip(pairwise(self._at), self._free, strict=False))

    def _cut(self, at: int) -> int:
        """Split the step function at a time and return the index beginning there."""
        n = bisect_left(self._at, at)
        if self._at[n] != at:
            self._at.insert(n, at)
            self._free.insert(n, self._free[n - 1])
        return n

    def _join(self, first: int, last: int) -> None:
        """Merge neighbouring steps of the same height.

        Without this, every later call would walk over all the used-up steps again.
        """
        since, until = max(first - 1, 0), min(last + 1, len(self._at) - 1)
        kept = [n for n in range(since, until) if n == since or self._free[n] != self._free[n - 1]]
        self._at[since:until] = [self._at[n] for n in kept]
        self._free[since:until] = [self._free[n] for n in kept]


def covered_unit_seconds(stretches: Iterable[ActiveUnits], commitments: Sequence[FreeUnits]) -> list[Coverage]:
    """Return what each commitment covers of each interval, leaving out intervals with none."""
    found: list[Coverage] = [{} for _ in commitments]
    for each in sorted(stretches, key=lambda stretch: stretch.rank):
        spans: list[Span] = [(each.start, each.end, each.units)]
        for n, free in enumerate(commitments):
            rest: list[Span] | None = [] if n + 1 < len(commitments) else None
            if taken := sum(free.take(*span, rest) for span in spans):
                found[n][each.key] = found[n].get(each.key, 0) + taken
            spans = rest or []
    return found
