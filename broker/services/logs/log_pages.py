"""Read stored logs: pages of lines, searches, and what is known of a log."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db.models import F, Q
from django.db.models.functions import Least

from broker.domain.logs.log_lines import NumberedLine, decode_lines
from broker.models import Lease, LeaseLog, LeaseLogChunk

FOLLOW_TIME = timedelta(seconds=30)  # somebody who follows a log asks again within this
RENEW_BEFORE = timedelta(seconds=20)


@dataclass(frozen=True, slots=True)
class LineFilter:
    """Which lines of a log are wanted; empty: all."""

    search: str = ""  # text that the line contains, in any case
    source: str = ""  # a LineSource
    level: str = ""  # a LogLevel

    def accepts(self, line: NumberedLine) -> bool:
        return (
            (not self.search or self.search.casefold() in line.line.text.casefold())
            and (not self.source or line.line.source == self.source)
            and (not self.level or line.line.level == self.level)
        )


ALL_LINES = LineFilter()


@dataclass(frozen=True, slots=True)
class LogState:
    """What is known of a log beside its lines."""

    first_line: int = 1
    next_line: int = 1
    size_bytes: int = 0
    fault: str = ""  # why output cannot be read now
    completed_at: datetime | None = None  # since when it is complete

    @property
    def removed_lines(self) -> int:
        """Return how many of its oldest lines are no longer kept."""
        return self.first_line - 1

    @property
    def line_count(self) -> int:
        return self.next_line - self.first_line


@dataclass(frozen=True, slots=True)
class LogPage:
    """Some lines of a log, oldest first."""

    lines: list[NumberedLine] = field(default_factory=list)
    next_after: int = 0  # number after which the next page begins
    has_more: bool = False


def read_log_state(lease: Lease) -> LogState:
    """Return the state of a lease's log; an empty one if it has none."""
    columns = ("first_line", "next_line", "size_bytes", "fault", "completed_at")
    row = LeaseLog.objects.filter(pk=lease.pk).values_list(*columns).first()
    return LogState(*row) if row else LogState()


def latest_lines(lease_ids: Sequence[str]) -> dict[str, tuple[str, int | None, datetime | None]]:
    """Return each lease's state and how far its log has got.

    The number of its next line, and when it was complete.

    Must run inside a scope that sees these leases.
    """
    rows = Lease.objects.filter(pk__in=lease_ids).values_list("pk", "state", "log__next_line", "log__completed_at")
    return {lease: (state, next_line, completed) for lease, state, next_line, completed in rows}


def read_lines_after(lease: Lease, after: int, *, limit: int, wanted: LineFilter = ALL_LINES) -> LogPage:
    """Return the first lines with a number above `after`."""
    lines: list[NumberedLine] = []
    seen = after
    for line in _lines_after(lease, after):
        if len(lines) == limit:
            return LogPage(lines, seen, has_more=True)
        seen = line.number
        if wanted.accepts(line):
            lines.append(line)
    return LogPage(lines, seen)


def read_last_lines(lease: Lease, *, limit: int, wanted: LineFilter = ALL_LINES, before: int = 0) -> LogPage:
    """Return the newest lines, or the newest with a number below `before`."""
    found: list[NumberedLine] = []
    newest = 0
    chunks = LeaseLogChunk.objects.filter(lease=lease.pk).order_by("-first_line")
    if before:
        chunks = chunks.filter(first_line__lt=before)
    for chunk in chunks.iterator(chunk_size=8):
        lines = list(decode_lines(chunk.body, first=chunk.first_line))
        if before:
            lines = lines[: before - chunk.first_line]
        newest = newest or lines[-1].number
        found[:0] = [line for line in lines if wanted.accepts(line)]
        if len(found) > limit:
            return LogPage(found[-limit:], newest, has_more=True)
    return LogPage(found, newest)


def iterate_lines(lease: Lease) -> Iterator[NumberedLine]:
    """Yield every line that is kept, oldest first."""
    return _lines_after(lease, 0)


def follow_log(lease: Lease, *, now: datetime) -> None:
    """Have a log collected every second, for as long as somebody asks for it."""
    soon = now + timedelta(seconds=1)
    not_followed = Q(followed_until=None) | Q(followed_until__lt=now + RENEW_BEFORE) | Q(due_at__gt=soon)
    LeaseLog.objects.filter(not_followed, pk=lease.pk, due_at__isnull=False).update(
        followed_until=now + FOLLOW_TIME, due_at=Least(F("due_at"), soon)
    )


def _lines_after(lease: Lease, after: int) -> Iterator[NumberedLine]:
    chunks = LeaseLogChunk.objects.filter(lease=lease.pk, first_line__gt=after + 1 - F("line_count")).order_by(
        "first_line"
    )
    for chunk in chunks.iterator(chunk_size=8):
        for line in decode_lines(chunk.body, first=chunk.first_line):
            if line.number > after:
                yield line
