"""Stored logs: begin one, claim it, append lines within its bounds, delete it."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models import F, Q
from psycopg.types.json import Jsonb

from broker.domain.logs.log_lines import LogLine, encode_lines
from broker.models import Lease, LeaseLog, LeaseLogChunk
from ports.postgres.sql_statements import fetch_rows, load_sql, prepared_cursor

CHUNK_BYTES = 32 * 1024  # a chunk grows to about this size; the next lines begin a new one
FIRST_READ = timedelta(seconds=10)  # after its placement
CLAIM_TIME = timedelta(seconds=30)  # who claimed a log has stored what it read, or is dead, after this


@dataclass(frozen=True, slots=True)
class LogProgress:
    """How far a log is collected, and when it is collected next."""

    generation: int  # placement that `cursor` belongs to
    cursor: dict[str, Any] = field(default_factory=dict)  # what the provisioner has read of that placement
    transition_seq: int = -1  # of the newest state change that has a line
    fault: str = ""  # why output cannot be read now
    quiet_reads: int = 0  # consecutive reads without a new line
    due_at: datetime | None = None  # null: everything is collected
    completed_at: datetime | None = None  # since when everything of a released lease is collected


class _Piece(NamedTuple):
    """Encoded lines that are stored together."""

    body: str
    line_count: int
    size: int  # bytes


def begin_log(lease: Lease, *, now: datetime) -> None:
    """Have the log of a lease collected from now on; repeated for every placement.

    Nothing is written while it starts, and who follows it has it read every second.
    """
    with prepared_cursor() as cursor:
        cursor.execute(
            load_sql("broker/logs/begin_log"),
            {"lease": lease.pk, "tenant": lease.tenant_id, "due_at": now + FIRST_READ},
        )


def not_claimed(now: datetime) -> Q:
    """Return the condition that nobody is collecting a log."""
    return Q(claimed_until=None) | Q(claimed_until__lt=now)


def claim_due_log(lease_id: str, *, now: datetime) -> LeaseLog | None:
    """Claim a due log for a while; return None if another has it.

    Whoever stores of it meanwhile takes it over: what was read under the claim is then not stored.
    """
    wanted = {"lease": lease_id, "now": now, "until": now + CLAIM_TIME}
    return next(iter(LeaseLog.objects.raw(load_sql("broker/logs/claim_due_log"), wanted)), None)


def store_lines(log: LeaseLog, lines: Sequence[LogLine], progress: LogProgress) -> bool:
    """Append lines to a log; return False if it changed since it was loaded."""
    pieces = list(_pieces(lines))
    first = pieces[0] if pieces else _Piece("", 0, 0)
    size = sum(piece.size for piece in pieces)
    stored = fetch_rows(
        load_sql("broker/logs/store_lines"),
        {
            **asdict(progress),
            "cursor": Jsonb(progress.cursor),
            "lease": log.pk,
            "claims": log.claims,
            "all_lines": len(lines),
            "all_bytes": size,
            "first_line": log.next_line,
            "lines": first.line_count,
            "bytes": first.size,
            "body": first.body,
            "chunk_bytes": CHUNK_BYTES,
        },
    )
    if not stored:
        return False
    number = log.next_line + first.line_count
    for piece in pieces[1:]:
        _add_chunk(log, piece, first_line=number)
        number += piece.line_count
    if lines:
        _delete_oldest(log, size_bytes=log.size_bytes + size)
    return True


def delete_log(log: LeaseLog) -> None:
    """Delete a log with all of its lines."""
    LeaseLogChunk.objects.filter(lease=log.pk).delete()
    log.delete()


def _pieces(lines: Sequence[LogLine]) -> Iterator[_Piece]:
    """Yield encoded lines in pieces that are no larger than a chunk."""
    rows, size = list[str](), 0
    for line in lines:
        row = encode_lines([line])
        if rows and size + len(row.encode()) > CHUNK_BYTES:
            yield _Piece("".join(rows), len(rows), size)
            rows, size = [], 0
        rows.append(row)
        size += len(row.encode())
    if rows:
        yield _Piece("".join(rows), len(rows), size)


def _add_chunk(log: LeaseLog, piece: _Piece, *, first_line: int) -> None:
    LeaseLogChunk.objects.create(
        lease_id=log.pk,
        tenant_id=log.tenant_id,
        first_line=first_line,
        line_count=piece.line_count,
        size_bytes=piece.size,
        body=piece.body,
    )


def _delete_oldest(log: LeaseLog, *, size_bytes: int) -> None:
    """Delete the oldest chunks of a log that is too large; keep the newest."""
    excess = size_bytes - settings.LOG_MAX_BYTES
    if excess <= 0:
        return
    oldest = LeaseLogChunk.objects.filter(lease=log.pk).order_by("first_line")
    chunks = list(oldest.values_list("first_line", "line_count", "size_bytes"))
    freed, until = 0, 0
    for start, count, size in chunks[:-1]:
        if freed >= excess:
            break
        freed, until = freed + size, start + count
    if until:
        LeaseLogChunk.objects.filter(lease=log.pk, first_line__lt=until).delete()
        LeaseLog.objects.filter(pk=log.pk).update(first_line=until, size_bytes=F("size_bytes") - freed)
