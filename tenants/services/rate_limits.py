"""Shared counts of requests, of which each process takes blocks.

So most requests cost no statement, and the limit holds for all processes together. A request is counted after it was
served; a caller may thus exceed a limit by what is in progress at once.
"""

import threading
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import structlog
from django.db import Error, connection

from ports.postgres import sql_statements
from tenants.domain.rate_limits import Charge, RequestCounts
from tenants.services.errors import ProblemError

log = structlog.get_logger(__name__)
MAX_COUNTS = 50_000  # of one process; then all are forgotten
RETENTION = timedelta(hours=2)

_counts, _lock = RequestCounts(), threading.Lock()


class RateLimited(ProblemError):
    """More requests were sent than allowed."""

    code, status, title = "rate-limited", 429, "Too many requests"


def find_exceeded(charges: Iterable[Charge], *, now: datetime) -> Charge | None:
    """Return the first charge whose limit is used up, as this process knows."""
    with _lock:
        return next((charge for charge in charges if _counts.is_exceeded(charge, now)), None)


def count_request(charges: Sequence[Charge], *, now: datetime) -> None:
    """Count one request against its limits, outside of any transaction.

    Without a database it is not counted.
    """
    with _lock:
        wanted = [charge for charge in charges if not _counts.spend(charge, now)]
        if len(_counts) > MAX_COUNTS:
            _counts.forget()
    if not wanted:
        return
    try:
        used = _take_blocks(wanted, now=now)
    except Error as error:
        log.warning("requests not counted", because=str(error).strip())
        return
    with _lock:
        for charge in wanted:
            _counts.add_block(charge, used[charge.limit.name, charge.key], now)


def remaining_requests(charges: Iterable[Charge], *, now: datetime) -> list[int]:
    """Return how many more requests each limit lets in, as far as this process knows."""
    with _lock:
        return [_counts.remaining(charge, now) for charge in charges]


def forget_counts() -> None:
    """Forget what this process has taken."""
    with _lock:
        _counts.forget()


def _take_blocks(charges: Sequence[Charge], *, now: datetime) -> dict[tuple[str, str], int]:
    values = [
        now,
        [charge.limit.name for charge in charges],
        [charge.key for charge in charges],
        [charge.limit.window_at(now) for charge in charges],
        [charge.limit.block for charge in charges],
    ]
    rows = sql_statements.fetch_rows(sql_statements.load_sql("tenants/rate_limits/take_blocks"), values)
    return {(policy, key): used for policy, key, used in rows}


def delete_old_counts(*, now: datetime) -> int:
    """Delete counts that nobody has added to for hours; return how many."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM request_count WHERE counted_at < %s", [now - RETENTION])
        return int(cursor.rowcount)
