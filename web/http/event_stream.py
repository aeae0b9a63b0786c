"""Live events and logs as text/event-stream, one short transaction per batch.

Each batch is read with the visitor's row-level security. A reader resumes with Last-Event-ID and
loses nothing; web/http/live_feeds.py has what each path sends.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs

import structlog
from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import InterfaceError, OperationalError, connection, transaction

from ports import clock
from tenants.services.authentication import Visitor, refuse
from tenants.services.errors import NotAllowed, ProblemError
from web.http.live_feeds import FeedBatch, InvalidPosition, LiveFeed, UnknownSubject, feed_of
from web.http.stream_authentication import StreamRefused, StreamUnavailable, authenticate_headers
from web.http.stream_changes import StreamChanges
from web.http.stream_seats import TOO_MANY, StreamSeats

log = structlog.get_logger(__name__)
REQUEST_ID = "events"  # used as the request id in this process's logs and audit records
CHECK_INTERVAL_S = 15.0  # until an idle visitor is authenticated again, and a comment keeps the connection alive
RETRY_S = 0.5  # after the database was unavailable
MAX_READERS = 500
SEND_TIMEOUT_S = 10.0  # a reader that accepts nothing for so long is dropped; it can resume

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class EventStreamApp:
    """The ASGI application."""

    def __init__(self) -> None:
        self.readers = 0
        self.changes = StreamChanges()
        self.seats = StreamSeats()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "http" and scope["path"] == "/health":
            await _send_json(send, 200, {"status": "ok"})
        elif scope["type"] == "http" and scope["method"] == "GET" and (feed := feed_of(scope["path"])):
            await self._serve(feed, scope, receive, send)
        elif scope["type"] == "http" and scope["method"] == "OPTIONS" and feed_of(scope["path"]):
            await _send_options(scope, send)
        elif scope["type"] == "http":
            await _send_json(send, 404, _problem(404, "This server only serves live events and logs."))

    async def _serve(self, feed: LiveFeed, scope: Scope, receive: Receive, send: Send) -> None:
        if self.readers >= MAX_READERS:
            await _send_json(send, 503, _problem(503, "There are too many connections. Try again in a minute."))
            return
        headers = _header_texts(scope)
        self.readers += 1
        try:
            await self._read(feed, headers, scope, receive, send)
        except StreamRefused as away:
            extra = [(b"retry-after", b"%d" % RETRY_AFTER_S)] if away.status == TOO_MANY else []
            body = _problem(away.status, away.why, away.cause)
            await _send_json(send, away.status, body, _cors_headers(headers) + extra)
        except TimeoutError:
            log.info("event stream connection closed", because=f"client did not read for {SEND_TIMEOUT_S} s")
        finally:
            self.readers -= 1

    async def _read(self, feed: LiveFeed, headers: dict[str, str], scope: Scope, receive: Receive, send: Send) -> None:
        query = parse_qs(scope["query_string"].decode("latin-1"))
        cursor = headers.get("last-event-id") or query.get("cursor", [""])[0]
        tenant_id, batch = await sync_to_async(_read_first, thread_sensitive=False)(feed, headers, cursor)
        async with self.seats.hold_seat(tenant_id):
            await self._send_stream(feed, headers, cursor, batch, receive, send)

    async def _send_stream(
        self, feed: LiveFeed, headers: dict[str, str], cursor: str, batch: FeedBatch, receive: Receive, send: Send
    ) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": STREAM_HEADERS + _cors_headers(headers)})
        # The resumed position, not the batch's end: a reader cut off before the first event loses none.
        await _send_chunk(
            send, b"retry: 2000\n: you are here\nid: %s\n\n" % (cursor or batch.start or batch.position).encode()
        )
        gone = asyncio.ensure_future(_wait_for_disconnect(receive))
        try:
            await self._follow(feed, headers, batch, gone, send)
        finally:
            gone.cancel()

    async def _follow(
        self, feed: LiveFeed, headers: dict[str, str], batch: FeedBatch, gone: "asyncio.Future[None]", send: Send
    ) -> None:
        with self.changes.watch(batch.subject) as watch:
            while not gone.done():
                for frame in batch.frames:
                    await _send_chunk(send, frame)
                if batch.ended:
                    await send({"type": "http.response.body", "body": LAST_FRAME})
                    return
                if not batch.is_full and not await watch.wait(gone, seconds=CHECK_INTERVAL_S):
                    await _send_chunk(send, b": still here\n\n")
                try:
                    batch = await _read_next(feed, headers, batch.position)
                except StreamUnavailable:
                    await asyncio.wait([gone], timeout=RETRY_S)
                    batch = replace(batch, frames=(), is_full=True)  # read again at once
                except StreamRefused:
                    await send({"type": "http.response.body", "body": LAST_FRAME})
                    return


# The same code, title and fix as in the rest of the API (web/http/errors.py).
PROBLEMS = {
    400: ("invalid", "A value is not valid", "Send the ID of the last event you received, or none to start now."),
    401: ("not-authenticated", "The credential is not valid", "Create a new token on the Tokens page, or sign in."),
    429: ("rate-limited", "Too many requests", "Close streams that nobody reads, or try again in a minute."),
    404: ("not-found", "Not found", "Use the web server's address for everything but live events."),
    503: ("busy", "Live events are not available now", "Wait a minute, then send the same Last-Event-ID."),
}
RETRY_AFTER_S = 60
LAST_FRAME = b"event: end\ndata: {}\n\n"
STREAM_HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


def _header_texts(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


async def _read_next(feed: LiveFeed, headers: dict[str, str], position: str) -> FeedBatch:
    return await sync_to_async(_read_batch, thread_sensitive=False)(feed, headers, position)


def _read_batch(feed: LiveFeed, headers: dict[str, str], position: str) -> FeedBatch:
    """Authenticate the visitor again and read the next batch.

    Whoever loses access is disconnected at the next batch. Raises StreamUnavailable without a database.
    """
    return _read_first(feed, headers, position)[1]


def _read_first(feed: LiveFeed, headers: dict[str, str], position: str) -> tuple[str, FeedBatch]:
    """Authenticate the visitor and read a batch; return it with their tenant."""
    try:
        with transaction.atomic():
            visitor = _authenticate(headers)
            return visitor.tenant.pk, feed.read(visitor, position, now=clock.now())
    except InvalidPosition as error:
        raise StreamRefused(400, str(error)) from None
    except UnknownSubject as error:
        raise StreamRefused(404, str(error)) from None
    except NotAllowed as refused:
        raise StreamRefused(403, refused.detail, refused) from None
    except (OperationalError, InterfaceError) as error:
        log.warning("event stream waiting", because=str(error).strip())
        connection.close()
        raise StreamUnavailable(503, "The database is unavailable. Try again.") from None


def _authenticate(headers: dict[str, str]) -> Visitor:
    visitor = authenticate_headers(headers, request_id=REQUEST_ID)
    if not visitor.grants.anywhere("leases.read"):
        refuse("leases.read", visitor.grants)
    return visitor


def _cors_headers(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    """Return CORS headers that let only the portal's own pages read with their cookie."""
    if headers.get("origin") != settings.PUBLIC_URL:
        return []
    return [
        (b"access-control-allow-origin", settings.PUBLIC_URL.encode()),
        (b"access-control-allow-credentials", b"true"),
        (b"vary", b"Origin"),
    ]


def _problem(status: int, detail: str, cause: ProblemError | None = None) -> dict[str, Any]:
    code, title, fix = (cause.code, cause.title, cause.fix.text) if cause else PROBLEMS[status]
    return {
        "type": f"/problems/{code}",
        "title": title,
        "status": status,
        "detail": detail,
        "instance": "/api/v1/events",
        "code": code,
        "request_id": REQUEST_ID,
        "fix": {"text": fix},
    }


async def _send_chunk(send: Send, text: bytes) -> None:
    async with asyncio.timeout(SEND_TIMEOUT_S):
        await send({"type": "http.response.body", "body": text, "more_body": True})


async def _send_json(
    send: Send, status: int, body: dict[str, Any], headers: list[tuple[bytes, bytes]] | None = None
) -> None:
    kind = b"application/json" if status < 400 else b"application/problem+json"
    await send(
        {"type": "http.response.start", "status": status, "headers": [(b"content-type", kind), *(headers or [])]}
    )
    await send({"type": "http.response.body", "body": json.dumps(body).encode()})


async def _send_options(scope: Scope, send: Send) -> None:
    """Answer which methods a stream has, also to a browser's preflight request."""
    headers = [(b"allow", b"GET, OPTIONS")]
    if cors := _cors_headers(_header_texts(scope)):
        headers += [
            *cors,
            (b"access-control-allow-methods", b"GET"),
            (b"access-control-allow-headers", b"Authorization, Last-Event-ID"),
        ]
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
