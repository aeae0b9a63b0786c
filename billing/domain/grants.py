"""Allocation of grants to invoice lines, by priority and scope.

Amounts are minor units of one currency. A grant pays for what was used before it expires, whenever that
is invoiced.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise

NEVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class AvailableGrant:
    """The balance of a grant and its scope; an empty scope covers everything."""

    id: str
    left: int
    priority: int
    expires_at: datetime | None = None
    project: str = ""
    offering: str = ""

    @property
    def draw_order(self) -> tuple[int, datetime, str]:
        """Sort key: lowest priority number first, then the earliest expiry."""
        return self.priority, self.expires_at or NEVER, self.id

    def covers(self, part: "LinePart") -> bool:
        """Return whether the grant may pay for a part.

        Usage up to the very moment of expiry is covered.
        """
        return (
            (not self.project or self.project in part.path)
            and (not self.offering or self.offering == part.offering)
            and (self.expires_at is None or part.until <= self.expires_at)
        )


@dataclass(frozen=True, slots=True)
class LinePart:
    """The part of a line used before a time and after any earlier part."""

    line: int
    path: tuple[str, ...]  # projects from the root to the line's own
    offering: str
    until: datetime
    minor: int


def split_line(line: LinePart, amounts_until: Mapping[datetime, int]) -> list[LinePart]:
    """Split a line at given times into parts; the last part is the rest.

    `amounts_until` maps each time to the amount used by then. Rounding may make an intermediate amount larger
    than the total; no part is ever negative.
    """
    found, before = [], 0
    for moment in sorted(moment for moment in amounts_until if moment < line.until):
        come_to = min(max(amounts_until[moment], before), line.minor)
        found.append(replace(line, until=moment, minor=come_to - before))
        before = come_to
    return [part for part in (*found, replace(line, minor=line.minor - before)) if part.minor > 0]


def limit_to_total(parts: Sequence[LinePart], total: int) -> list[LinePart]:
    """Reduce the parts, last first, so that they add up to at most the total.

    Lines with negative amounts lower the total; nobody draws more than is owed.
    """
    over, found = sum(part.minor for part in parts) - total, []
    for part in reversed(parts):
        less = min(max(over, 0), part.minor)
        over -= less
        if part.minor > less:
            found.append(replace(part, minor=part.minor - less))
    return found[::-1]


def allocate_grants(credits: Iterable[AvailableGrant], parts: Sequence[LinePart]) -> dict[tuple[str, int], int]:
    """Return what each grant pays of each line, using grants to the full in order.

    A grant with a narrow scope is not left unused because a wider one paid for its lines first: the
    wider one is moved to other lines it covers. The total that an earlier grant pays never changes. This
    is an augmenting-path search.
    """
    ranked = sorted(credits, key=lambda credit: credit.draw_order)
    covers = [[n for n, part in enumerate(parts) if credit.covers(part)] for credit in ranked]
    free = [part.minor for part in parts]
    paid: list[dict[int, int]] = [{} for _ in ranked]  # by grant: part -> amount
    for at, credit in enumerate(ranked):
        left = credit.left
        while left > 0 and (way := _find_path(at, covers, free, paid)):
            left -= _pay_along(way, left, free, paid)
    found: dict[tuple[str, int], int] = {}
    for credit, of in zip(ranked, paid, strict=True):
        for n, minor in of.items():
            key = credit.id, parts[n].line
            found[key] = found.get(key, 0) + minor
    return {key: minor for key, minor in found.items() if minor}


GrantPath = list[tuple[int, int]]  # (grant, part): each grant takes over the part from the next one


def _find_path(
    start: int, covers: Sequence[Sequence[int]], free: Sequence[int], paid: Sequence[Mapping[int, int]]
) -> GrantPath:
    """Return the shortest augmenting path from a grant to an unpaid part; empty if none.

    The path goes over parts whose current grants could pay for others instead.
    """
    came: dict[int, GrantPath] = {}
    waiting: deque[tuple[int, GrantPath]] = deque([(start, [])])
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


def _pay_along(way: GrantPath, left: int, free: list[int], paid: Sequence[dict[int, int]]) -> int:
    """Move as much as fits along a path and return the amount."""
    gives = [paid[other][n] for (_, n), (other, _) in pairwise(way)]
    last = way[-1][1]
    minor = min(left, free[last], *gives)
    for at, (grant, n) in enumerate(way):
        paid[grant][n] = paid[grant].get(n, 0) + minor
        if at + 1 < len(way):
            paid[way[at + 1][0]][n] -= minor
    free[last] -= minor
    return minor
