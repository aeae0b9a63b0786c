"""How much waits in the queues of the workers."""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from celery import current_app
from kombu.exceptions import OperationalError

from ports import clock

SENT_AT_HEADER = "sent_at_ms"
CONNECT_TIMEOUT_S = 2


@dataclass(frozen=True, slots=True)
class QueueBacklog:
    """Messages that wait in one queue, and the age of the oldest."""

    queue: str
    messages: int
    oldest_s: float = 0.0


def read_backlogs(queues: Iterable[str]) -> list[QueueBacklog]:
    """Return what waits in these queues; nothing if Valkey does not answer."""
    connection = current_app.connection_for_read()
    away: tuple[type[Exception], ...] = (*connection.connection_errors, OperationalError)
    try:
        with connection:
            connection.ensure_connection(max_retries=1, interval_start=0, timeout=CONNECT_TIMEOUT_S)
            valkey = connection.default_channel.client
            # Messages are pushed at the head and taken from the tail.
            return [QueueBacklog(queue, valkey.llen(queue), _age_s(valkey.lindex(queue, -1))) for queue in queues]
    except away:
        return []


def _age_s(message: bytes | None) -> float:
    """Return the age of a message; 0 if it is missing or unknown."""
    sent_at_ms = json.loads(message)["headers"].get(SENT_AT_HEADER) if message else None
    return max(clock.milliseconds() - sent_at_ms, 0) / 1000 if sent_at_ms else 0.0
