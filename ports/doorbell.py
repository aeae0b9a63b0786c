"""Hints to workers. The row is the queue; a ring only shortens the wait (house.md §3)."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import wraps
from typing import Any, TypeVar, cast

import structlog
from celery import current_app, current_task, shared_task
from django.db import connection
from kombu.exceptions import OperationalError

from ports import database

log = structlog.get_logger(__name__)
CHANNEL = "gpubroker_doorbell"
# What the logs call the row that a task looks at, by the beginning of its id.
CALLED = {
    "clu": "cluster_id",
    "cor": "correction_id",
    "lch": "layout_change_id",
    "lse": "lease_id",
    "mpl": "plan_id",
    "pay": "payment_id",
    "vol": "volume_id",
}
Answer = TypeVar("Answer", bound=Callable[..., Any])

# One statement per ring: the NOTIFY is delivered at commit, so the relay never wakes for a rolled-back hint.
RING = """
WITH rung AS (
  INSERT INTO ports_ring (task, subject, tenant_id, at, request_id) VALUES (%s, %s, %s, %s, %s)
)
SELECT pg_notify(%s, '')
"""
RING_FOR_EACH = """
WITH rung AS (
  INSERT INTO ports_ring (task, subject, tenant_id, at, request_id)
  SELECT %s, subject, %s, %s, %s FROM unnest(%s::text[]) AS subject
)
SELECT pg_notify(%s, '')
"""


def _write(task: str, subject: str, tenant_id: str, now: datetime) -> None:
    request_id = structlog.contextvars.get_contextvars().get("request_id", "")
    with database.prepared() as cursor:
        cursor.execute(RING, [task, subject, tenant_id, now, request_id, CHANNEL])


_ring: Callable[[str, str, str, datetime], None] = _write


def ring(task: str, subject: str, *, tenant_id: str = "", now: datetime, after_s: float = 0) -> None:
    """Ask for `task(subject)` to be run soon, or `after_s` seconds from now, once the transaction has committed."""
    _ring(task, subject, tenant_id, now + timedelta(seconds=after_s))


def ring_for_each(task: str, subjects: Collection[str], *, tenant_id: str, now: datetime) -> None:
    """Ask for `task` to be run for many subjects of one tenant: the same as a ring for each, in one statement."""
    if _ring is not _write:
        for subject in subjects:
            _ring(task, subject, tenant_id, now)
    elif subjects:
        request_id = structlog.contextvars.get_contextvars().get("request_id", "")
        with database.prepared() as cursor:
            cursor.execute(RING_FOR_EACH, [task, tenant_id, now, request_id, list(subjects), CHANNEL])


def is_rung(task: str, subject: str) -> bool:
    """Tell whether a hint of this kind still waits to be sent: another would say no more."""
    with database.prepared() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM ports_ring WHERE task = %s AND subject = %s)", [task, subject]
        )
        return bool(cursor.fetchone()[0])


def send(task: str, subject: str, tenant_id: str, *, request_id: str = "") -> None:
    """Hand one hint to Celery by name; raises kombu's OperationalError when Valkey is away."""
    args, headers = [subject, tenant_id] if tenant_id else [subject], {"request_id": request_id}
    current_app.send_task(task, args=args, retry=False, headers=headers if request_id else None)


def answering(task: str) -> Callable[[Answer], Answer]:
    """Make a function what is run when this task is rung for.

    A worker keeps its connection to PostgreSQL from one task to the next: to make one costs more than most tasks.
    Each task begins by having it looked at, as a web request does. Whatever is logged on the way names the task, the
    row it is about and the request that rang for it, and so does what went wrong, which Celery itself leaves unsaid.
    """

    def made(answer: Answer) -> Answer:
        @wraps(answer)
        def run(*subject: Any, **more: Any) -> Any:
            with structlog.contextvars.bound_contextvars(task=task, **_story(*subject)):
                try:
                    if not connection.in_atomic_block:  # a test's, that calls it as a function
                        connection.close_if_unusable_or_obsolete()
                    return answer(*subject, **more)
                except Exception:
                    log.exception("task failed")
                    raise

        return cast(Answer, shared_task(name=task)(run))

    return made


def _story(subject: str = "", tenant_id: str = "", *_: Any) -> dict[str, str]:
    """Return what tells this run of a task from others, as the logs name it."""
    told = {CALLED.get(subject.partition("_")[0], "subject"): subject, "tenant_id": tenant_id}
    if current_task:
        told["request_id"] = (current_task.request.headers or {}).get("request_id", "")
    return {name: value for name, value in told.items() if value}


def reachable() -> bool:
    """Tell whether the queue's server answers now."""
    queue = current_app.connection_for_write()
    away: tuple[type[Exception], ...] = (*queue.connection_errors, OperationalError)
    try:
        with queue:
            queue.ensure_connection(max_retries=1, interval_start=0, timeout=2)
            queue.default_channel.client.ping()
    except away:
        return False
    return True


@contextmanager
def heard_by(listener: Callable[[str, str, str, datetime], None]) -> Iterator[None]:
    """Give hints to `listener` instead of the outbox until the block ends: simulation and replay."""
    global _ring
    before, _ring = _ring, listener
    try:
        yield
    finally:
        _ring = before
