"""Stored logs: begin one, claim it, append lines within its bounds, delete it."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import F, Q, Value
from django.db.models.functions import Concat

from broker.domain.logs.log_lines import LogLine, encode_lines
from broker.models import Lease, LeaseLog, LeaseLogChunk
from ports.postgres.sql_statements import load_sql

CHUNK_BYTES = 32 * 1024  # a chunk grows to about this size; the next lines begin a new one
CLAIM_TIME = timedelta(seconds=30)  # who claimed a log has stored what it read, or is dead, after this


def begin_log(lease: Lease, *, now: datetime) -> None:
    """Have the log of a lease collected from now on; repeated for every placement."""
    new = LeaseLog(lease_id=lease.pk, tenant_id=lease.tenant_id, due_at=now)
    again = ["due_at", "quiet_reads", "completed_at"]
    LeaseLog.objects.bulk_create([new], update_conflicts=True, unique_fields=["lease"], update_fields=again)


def not_claimed(now: datetime) -> Q:
    """Return the condition that nobody is collecting a log."""
    return Q(claimed_until=None) | Q(claimed_until__lt=now)


def claim_log(lease_id: str, *, now: datetime, due_only: bool) -> LeaseLog | None:
    """Claim a lease's log for a while; return None if it cannot be claimed.

    There is none, or it is not due. Whoever claims it later takes it over: what an earlier claim has read is
    then not stored.
    """
    wanted = {"lease": lease_id, "now": now, "until": now + CLAIM_TIME, "due_only": due_only}
    return next(iter(LeaseLog.objects.raw(load_sql("broker/logs/claim_log"), wanted)), None)


def store_lines(log: LeaseLog, lines: Sequence[LogLine], **changes: object) -> bool:
    """Append lines to a claimed log; return False if another claimed it since.

    `changes` are other columns of its row.
    """
    body = encode_lines(lines)
    size = len(body.encode())
    first = log.next_line
    claimed = LeaseLog.objects.filter(pk=log.pk, claims=log.claims)
    changes |= {"claimed_until": None, "next_line": first + len(lines), "size_bytes": F("size_bytes") + size}
    if not claimed.update(**changes):
        return False
    if lines:
        _append_pieces(log, lines)
        _delete_oldest(log, size_bytes=log.size_bytes + size)
    return True


def delete_log(log: LeaseLog) -> None:
    """Delete a log with all of its lines."""
    LeaseLogChunk.objects.filter(lease=log.pk).delete()
    log.delete()


def _append_pieces(log: LeaseLog, lines: Sequence[LogLine]) -> None:
    """Append lines in pieces that are no larger than a chunk."""
    first, piece, size = log.next_line, list[str](), 0
    for line in lines:
        row = encode_lines([line])
        if piece and size + len(row.encode()) > CHUNK_BYTES:
            _append(log, "".join(piece), first=first, count=len(piece), size=size)
            first, piece, size = first + len(piece), [], 0
        piece.append(row)
        size += len(row.encode())
    _append(log, "".join(piece), first=first, count=len(piece), size=size)


def _append(log: LeaseLog, body: str, *, first: int, count: int, size: int) -> None:
    newest = None
    if log.next_line > log.first_line:
        newest = LeaseLogChunk.objects.filter(lease=log.pk).order_by("-first_line").defer("body").first()
    if newest and newest.size_bytes + size <= CHUNK_BYTES:
        LeaseLogChunk.objects.filter(lease=log.pk, first_line=newest.first_line).update(
            body=_concatenated(body), line_count=F("line_count") + count, size_bytes=F("size_bytes") + size
        )
        return
    LeaseLogChunk.objects.create(
        lease_id=log.pk, tenant_id=log.tenant_id, first_line=first, line_count=count, size_bytes=size, body=body
    )


def _concatenated(body: str) -> Concat:
    return Concat(F("body"), Value(body))


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
