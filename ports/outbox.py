"""Transactional outbox: messages to workers, written in the transaction of their cause.

The row is the queue; the Celery message only shortens the wait.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import wraps
from typing import Any, TypeVar, cast

import structlog
from celery import current_app, current_task, shared_task
from celery.exceptions import SoftTimeLimitExceeded
from django.db import connection
from kombu.exceptions import OperationalError

from ports import task_queues
from ports.postgres import sql_statements
from ports.postgres.sql_statements import load_sql

log = structlog.get_logger(__name__)
CHANNEL = "gpubroker_outbox"
# Log field of a task's subject, by the prefix of its id.
SUBJECT_LOG_FIELDS = {
    "clu": "cluster_id",
    "cor": "correction_id",
    "lch": "layout_change_id",
    "lse": "lease_id",
    "mpl": "plan_id",
    "pay": "payment_id",
    "vol": "volume_id",
}
TaskMessage = tuple[str, str, str]  # task, subject, tenant
TaskFunction = TypeVar("TaskFunction", bound=Callable[..., Any])


def _insert(task: str, subject: str, tenant_id: str, now: datetime) -> None:
    request_id = structlog.contextvars.get_contextvars().get("request_id", "")
    with sql_statements.prepared_cursor() as cursor:
        cursor.execute(load_sql("ports/outbox/enqueue"), [task, subject, tenant_id, now, request_id, CHANNEL])


_enqueue: Callable[[str, str, str, datetime], None] = _insert


def enqueue(task: str, subject: str, *, tenant_id: str = "", now: datetime, after_s: float = 0) -> None:
    """Enqueue `task(subject)`, to run once this transaction has committed.

    It runs soon, or `after_s` seconds from now.
    """
    _enqueue(task, subject, tenant_id, now + timedelta(seconds=after_s))


def enqueue_for_each(task: str, subjects: Collection[str], *, tenant_id: str, now: datetime) -> None:
    """Enqueue `task` for many subjects of one tenant, in one statement."""
    if _enqueue is not _insert:
        for subject in subjects:
            _enqueue(task, subject, tenant_id, now)
    elif subjects:
        request_id = structlog.contextvars.get_contextvars().get("request_id", "")
        with sql_statements.prepared_cursor() as cursor:
            cursor.execute(
                load_sql("ports/outbox/enqueue_for_each"), [task, tenant_id, now, request_id, list(subjects), CHANNEL]
            )


def is_pending(task: str, subject: str) -> bool:
    """Return whether the same message is pending, so that another would be redundant."""
    with sql_statements.prepared_cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM ports_outboxmessage WHERE task = %s AND subject = %s)", [task, subject]
        )
        return bool(cursor.fetchone()[0])


def send(task: str, subject: str, tenant_id: str, *, request_id: str = "", expires_s: float | None = None) -> None:
    """Send one message to Celery by task name; a worker drops it after `expires_s` seconds.

    Raises kombu's OperationalError when Valkey is unavailable.
    """
    args, headers = [subject, tenant_id] if tenant_id else [subject], {"request_id": request_id}
    current_app.send_task(task, args=args, retry=False, headers=headers if request_id else None, expires=expires_s)


def task(task: str) -> Callable[[TaskFunction], TaskFunction]:
    """Register a function as the Celery task of this name.

    A worker keeps its PostgreSQL connection from one task to the next, because opening one costs more than most
    tasks; each task checks it first, as a web request does. Everything logged while the task runs carries the
    task's name, its subject and the request that enqueued it. So does the log entry of an exception, which
    Celery's own log lacks.
    """

    def made(answer: TaskFunction) -> TaskFunction:
        @wraps(answer)
        def run(*subject: Any, **more: Any) -> Any:
            with structlog.contextvars.bound_contextvars(task=task, **_log_fields(*subject)):
                try:
                    if not connection.in_atomic_block:  # called as a function, by a test
                        connection.close_if_unusable_or_obsolete()
                    return answer(*subject, **more)
                except Exception as error:
                    log.exception("task failed")
                    if current_task and not current_task.request.called_directly:
                        task_queues.count_failure(task)
                    if isinstance(error, SoftTimeLimitExceeded) and not connection.in_atomic_block:
                        connection.close()  # it may still be in the middle of a statement
                    raise

        return cast(TaskFunction, shared_task(name=task)(run))

    return made


def _log_fields(subject: str = "", tenant_id: str = "", *_: Any) -> dict[str, str]:
    """Return the log fields of this run: subject, tenant and request id."""
    fields = {SUBJECT_LOG_FIELDS.get(subject.partition("_")[0], "subject"): subject, "tenant_id": tenant_id}
    if current_task:
        fields["request_id"] = (current_task.request.headers or {}).get("request_id", "")
    return {name: value for name, value in fields.items() if value}


def is_broker_reachable() -> bool:
    """Return whether the queue's server responds."""
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
def captured(listener: Callable[[str, str, str, datetime], None]) -> Iterator[None]:
    """Pass messages to `listener` instead of the outbox until the block ends.

    For simulation and replay.
    """
    global _enqueue
    before, _enqueue = _enqueue, listener
    try:
        yield
    finally:
        _enqueue = before
