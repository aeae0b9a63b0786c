"""Finds out for all live streams of a process which of them have something new.

One query every half second serves every reader of the process, so that an idle connection costs nothing.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import Any, NamedTuple

import structlog
from asgiref.sync import sync_to_async
from django.db import InterfaceError, OperationalError, connection, transaction

from broker.services.logs import log_pages
from broker.services.reports import lease_events
from tenants.services.rls import system_scope

log = structlog.get_logger(__name__)
POLL_INTERVAL_S = 0.5


class Topic(Enum):
    """What can be watched."""

    EVENTS = "events"  # of a tenant
    LOG = "log"  # of a lease


class Subject(NamedTuple):
    """What a stream is about: a tenant's events, or a lease's log."""

    topic: Topic
    pk: str


class Watch:
    """One reader's wait for changes of a subject."""

    def __init__(self) -> None:
        self._position: object = None
        self._changed = asyncio.Event()

    def notice(self, position: object) -> None:
        """Wake the reader if the position is not the one it knows."""
        if position != self._position:
            self._position = position
            self._changed.set()

    async def wait(self, gone: "asyncio.Future[None]", *, seconds: float) -> bool:
        """Wait for a change; return whether there was one.

        At most until `gone`, or for so many seconds.
        """
        changed: asyncio.Future[Any] = asyncio.ensure_future(self._changed.wait())
        try:
            await asyncio.wait([changed, gone], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            changed.cancel()
        has_changed = self._changed.is_set()
        self._changed.clear()
        return has_changed


class StreamChanges:
    """Reads the newest position of everything that is watched, and wakes those whose subject changed."""

    def __init__(self) -> None:
        self._watches: dict[Subject, set[Watch]] = defaultdict(set)
        self._polling: asyncio.Task[None] | None = None

    @contextmanager
    def watch(self, subject: Subject) -> Iterator[Watch]:
        """Watch a subject; the first poll counts as a change."""
        watch = Watch()
        self._watches[subject].add(watch)
        if self._polling is None:
            self._polling = asyncio.ensure_future(self._poll())
        try:
            yield watch
        finally:
            self._watches[subject].discard(watch)
            if not self._watches[subject]:
                del self._watches[subject]
            if not self._watches and self._polling:
                self._polling.cancel()
                self._polling = None

    async def _poll(self) -> None:
        while True:
            found = await sync_to_async(read_positions, thread_sensitive=False)(list(self._watches))
            for subject, position in found.items():
                for watch in self._watches.get(subject, ()):
                    watch.notice(position)
            await asyncio.sleep(POLL_INTERVAL_S)


def read_positions(subjects: Sequence[Subject]) -> dict[Subject, object]:
    """Return the newest position of each subject; nothing while the database is unavailable."""
    events = [each.pk for each in subjects if each.topic is Topic.EVENTS]
    logs = [each.pk for each in subjects if each.topic is Topic.LOG]
    found: dict[Subject, object] = {}
    try:
        with transaction.atomic(), system_scope():
            if events:
                found |= {Subject(Topic.EVENTS, pk): at for pk, at in lease_events.latest_positions(events).items()}
            if logs:
                found |= {Subject(Topic.LOG, pk): at for pk, at in log_pages.latest_lines(logs).items()}
    except (OperationalError, InterfaceError) as error:
        log.warning("event stream waiting", because=str(error).strip())
        connection.close()
    return found
