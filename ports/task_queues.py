"""What waits in the workers' queues, and how many tasks failed."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from celery import current_app
from kombu.exceptions import OperationalError

from ports import clock

Answer = TypeVar("Answer")
SENT_AT_HEADER = "sent_at_ms"
CONNECT_TIMEOUT_S = 2
FAILURES_KEY = "gpubroker:task_failures"  # a hash: how many runs of each task failed since Valkey began


@dataclass(frozen=True, slots=True)
class QueueBacklog:
    """Messages that wait in one queue, and the age of the oldest."""

    queue: str
    messages: int
    oldest_s: float = 0.0


def read_backlogs(queues: Iterable[str]) -> list[QueueBacklog]:
    """Return what waits in these queues; nothing if Valkey does not answer."""

    def read(valkey: Any) -> list[QueueBacklog]:
        # Messages are pushed at the head and taken from the tail.
        return [QueueBacklog(queue, valkey.llen(queue), _age_s(valkey.lindex(queue, -1))) for queue in queues]

    return _ask_valkey(read) or []


def count_failure(task: str) -> None:
    """Count a failed run of a task.

    It is not counted if Valkey does not answer.
    """
    _ask_valkey(lambda valkey: valkey.hincrby(FAILURES_KEY, task, 1))


def read_failures() -> dict[str, int]:
    """Return how many runs of each task failed; nothing if Valkey does not answer."""
    found = _ask_valkey(lambda valkey: valkey.hgetall(FAILURES_KEY)) or {}
    return {task.decode(): int(count) for task, count in found.items()}


def _ask_valkey(question: Callable[[Any], Answer]) -> Answer | None:
    """Return the answer to a question; None if Valkey does not answer."""
    connection = current_app.connection_for_read()
    away: tuple[type[Exception], ...] = (*connection.connection_errors, OperationalError)
    try:
        with connection:
            connection.ensure_connection(max_retries=1, interval_start=0, timeout=CONNECT_TIMEOUT_S)
            return question(connection.default_channel.client)
    except away:
        return None


def _age_s(message: bytes | None) -> float:
    """Return the age of a message; 0 if it is missing or unknown."""
    sent_at_ms = json.loads(message)["headers"].get(SENT_AT_HEADER) if message else None
    return max(clock.milliseconds() - sent_at_ms, 0) / 1000 if sent_at_ms else 0.0
