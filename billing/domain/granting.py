"""Which grants pay which parts of an invoice: in their order, in their scope, and none in another's way.

Amounts are minor units of one currency. A grant pays for what was used before it ends, not for what is invoiced before.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise

NEVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Credit:
    """What is left of a grant, and for what it may be drawn; empty scopes are everything."""

    id: str
    left: int
    priority: int
    expires_at: datetime | None = None
    project: str = ""
    offering: str = ""

    @property
    def order(self) -> tuple[int, datetime, str]:
        """The lowest number goes first, and of these what ends first."""
        return self.priority, self.expires_at or NEVER, self.id

    def covers(self, part: "Part") -> bool:
        """Tell whether it may pay for a part; what was used up to the very moment of its end, it may."""
        return (
            (not self.project or self.project in part.path)
            and (not self.offering or self.offering == part.offering)
            and (self.expires_at is None or part.until <= self.expires_at)
        )


@dataclass(frozen=True, slots=True)
class Part:
    """What of a line was used before a moment, and after any earlier part of it."""

    line: int
    path: tuple[str, ...]  # projects from the root to the line's own
    offering: str
    until: datetime
    minor: int


def sliced(line: Part, borders: Mapping[datetime, int]) -> list[Part]:
    """Cut a line's part at moments; `borders` say what it had come to by each of them. The last slice is the rest.

    Rounding may have it come to more on the way than in all: no slice is negative.
    """
    found, before = [], 0
    for moment in sorted(moment for moment in borders if moment < line.until):
        come_to = min(max(borders[moment], before), line.minor)
        found.append(replace(line, until=moment, minor=come_to - before))
        before = come_to
    return [part for part in (*found, replace(line, minor=line.minor - before)) if part.minor > 0]


def within(parts: Sequence[Part], total: int) -> list[Part]:
    """Take from the last parts what lines below nothing took from the total: nobody draws more than is owed."""
    over, found = sum(part.minor for part in parts) - total, []
    for part in reversed(parts):
        less = min(max(over, 0), part.minor)
        over -= less
        if part.minor > less:
            found.append(replace(part, minor=part.minor - less))
    return found[::-1]


def drawn(credits: Iterable[Credit], parts: Sequence[Part]) -> dict[tuple[str, int], int]:
    """Return what each grant pays of each line: all that it can, one grant after the other.

    A grant that may pay for little is not left over because one with a wider scope paid for that first: the wider one
    moves on to what else it may pay for. What an earlier grant pays in all never changes.
    """
    ranked = sorted(credits, key=lambda credit: credit.order)
    covers = [[n for n, part in enumerate(parts) if credit.covers(part)] for credit in ranked]
    free = [part.minor for part in parts]
    paid: list[dict[int, int]] = [{} for _ in ranked]  # by grant: part, amount
    for at, credit in enumerate(ranked):
        left = credit.left
        while left > 0 and (way := _way(at, covers, free, paid)):
            left -= _pay(way, left, free, paid)
    found: dict[tuple[str, int], int] = {}
    for credit, of in zip(ranked, paid, strict=True):
        for n, minor in of.items():
            key = credit.id, parts[n].line
            found[key] = found.get(key, 0) + minor
    return {key: minor for key, minor in found.items() if minor}


Way = list[tuple[int, int]]  # grant, part: each grant pays for the part; the next one gives way on it


def _way(
    start: int, covers: Sequence[Sequence[int]], free: Sequence[int], paid: Sequence[Mapping[int, int]]
) -> Way:
    """Return the shortest way to something unpaid, over parts whose grants could pay for others; empty: none."""
    came: dict[int, Way] = {}
    waiting: deque[tuple[int, Way]] = deque([(start, [])])
    while waiting:
        grant, before = waiting.popleft()
        for n in covers[grant]:
            if n in came:
                continue
            came[n] = way = [*before, (grant, n)]
            if free[n]:
                return way
            waiting.extend((other, way) for other, of in enumerate(paid) if other != grant and of.get(n))
    return []


def _pay(way: Way, left: int, free: list[int], paid: Sequence[dict[int, int]]) -> int:
    """Move as much as fits along a way, and return how much that was."""
    gives = [paid[other][n] for (_, n), (other, _) in pairwise(way)]
    last = way[-1][1]
    minor = min(left, free[last], *gives)
    for at, (grant, n) in enumerate(way):
        paid[grant][n] = paid[grant].get(n, 0) + minor
        if at + 1 < len(way):
            paid[way[at + 1][0]][n] -= minor
    free[last] -= minor
    return minor
