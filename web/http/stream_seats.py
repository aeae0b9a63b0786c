"""Seats of live streams, of which all events processes of a tenant share one limit."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import structlog
from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import Error, connection

from ports import clock, ids
from tenants.services import stream_seats
from web.http.stream_authentication import StreamRefused, StreamUnavailable

log = structlog.get_logger(__name__)
HEARTBEAT_S = 5.0  # a third of what a process counts for without one
TOO_MANY = 429


class StreamSeats:
    """The seats that this process has taken.

    They are written when a stream begins or ends, and otherwise only that the process is alive.
    """

    def __init__(self) -> None:
        self.process_id = ids.new("stp")
        self._held: Counter[str] = Counter()
        self._changed: set[str] = set()
        self._writing = asyncio.Lock()
        self._heartbeat: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def hold_seat(self, tenant_id: str) -> AsyncIterator[None]:
        """Take a seat for a stream, or raise StreamRefused if the tenant has none left."""
        if not settings.EVENT_STREAMS_PER_TENANT:
            yield
            return
        await self._take(tenant_id, settings.EVENT_STREAMS_PER_TENANT)
        try:
            yield
        finally:
            self._held[tenant_id] -= 1
            self._held += Counter()  # forgets zeros
            self._changed.add(tenant_id)
            await self._write()

    async def _take(self, tenant_id: str, limit: int) -> None:
        async with self._writing:
            self._changed.add(tenant_id)  # should this be cancelled on the way
            if not await sync_to_async(self._take_seat, thread_sensitive=False)(tenant_id, dict(self._held), limit):
                self._changed.discard(tenant_id)
                raise StreamRefused(TOO_MANY, f"This tenant has {limit} live streams open, which is the limit.")
            self._changed.discard(tenant_id)
            self._held[tenant_id] += 1
        if self._heartbeat is None:
            self._heartbeat = asyncio.ensure_future(self._stay_alive())

    async def _stay_alive(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            await self._write()

    async def _write(self) -> None:
        """Write what has changed, and that the process is alive.

        What fails is written the next time.
        """
        async with self._writing:
            changed, self._changed = self._changed, set()  # what changes meanwhile is written the next time
            if not await sync_to_async(self._keep_seats, thread_sensitive=False)(dict(self._held), changed):
                self._changed |= changed
            if not self._held and not self._changed and self._heartbeat:
                self._heartbeat.cancel()
                self._heartbeat = None

    def _take_seat(self, tenant_id: str, held: dict[str, int], limit: int) -> bool:
        try:
            return stream_seats.take_seat(self.process_id, tenant_id, held=held, limit=limit, now=clock.now())
        except Error as error:
            log.warning("seat of a stream not taken", because=str(error).strip())
            connection.close()
            raise StreamUnavailable(503, "The database is unavailable. Try again.") from None

    def _keep_seats(self, held: dict[str, int], changed: set[str]) -> bool:
        try:
            if held:
                stream_seats.keep_seats(self.process_id, held, changed=changed, now=clock.now())
            else:
                stream_seats.forget_process(self.process_id)
        except Error as error:
            log.warning("seats of streams not written", because=str(error).strip())
            with suppress(Error):
                connection.close()
            return False
        return True
