"""`GET /api/v1/events` as text/event-stream: one short transaction a batch, behind the visitor's own wall.

A reader resumes with Last-Event-ID and loses nothing; see broker/services/events.py for why.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

import structlog
from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.db import InterfaceError, OperationalError, connection, transaction
from django.utils.crypto import constant_time_compare

from broker.services import events
from broker.services.events import Event, NoPosition, Position
from ports import clock
from tenants.domain import credentials
from tenants.models import User
from tenants.services import doors
from tenants.services.doors import SESSION_TENANT, Visitor

log = structlog.get_logger(__name__)
ADDRESS = "/api/v1/events"
KNOWN_AS = "events"  # what stands for a request's id wherever this process leaves a trace
LOOK_EVERY_S = 0.5
HEARTBEAT_EVERY = 30  # looks without news until a comment keeps the connection alive
MOST_READERS = 500
SLOW_S = 10.0  # a reader that takes nothing for so long is dropped; it resumes where it stood

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class Away(Exception):
    """The visitor may not read on; carries the status and why."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status, self.why = status, why


class Stream:
    """The ASGI application."""

    def __init__(self) -> None:
        self.readers = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "http" and scope["path"] == "/health":
            await _answer(send, 200, {"status": "ok"})
        elif scope["type"] == "http" and scope["path"] == ADDRESS and scope["method"] == "GET":
            await self._serve(scope, receive, send)
        elif scope["type"] == "http":
            await _answer(send, 404, _problem(404, "There is only /api/v1/events here."))

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.readers >= MOST_READERS:
            await _answer(send, 503, _problem(503, "Too many readers; try again in a minute."))
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        self.readers += 1
        try:
            await self._read(headers, scope, receive, send)
        except Away as away:
            await _answer(send, away.status, _problem(away.status, away.why), _cors(headers))
        except TimeoutError:
            log.info("event reader dropped", because=f"it took nothing for {SLOW_S} s")
        finally:
            self.readers -= 1

    async def _read(self, headers: dict[str, str], scope: Scope, receive: Receive, send: Send) -> None:
        query = parse_qs(scope["query_string"].decode("latin-1"))
        asked = headers.get("last-event-id") or query.get("cursor", [""])[0]
        stood = _position(asked)
        position, batch = await _look(headers, stood)
        await send({"type": "http.response.start", "status": 200, "headers": STREAM + _cors(headers)})
        # Where it stood, not where the batch ends: who is cut off before the first event comes back for it.
        await _say(send, b"retry: 2000\n: you are here\nid: %s\n\n" % str(stood or position).encode())
        gone = asyncio.ensure_future(_hung_up(receive))
        try:
            await self._follow(headers, position, batch, gone, send)
        finally:
            gone.cancel()

    @staticmethod
    async def _follow(
        headers: dict[str, str],
        position: Position,
        batch: list[Event],
        gone: "asyncio.Future[None]",
        send: Send,
    ) -> None:
        quiet = 0
        while not gone.done():
            for event in batch:
                await _say(send, _frame(event))
            quiet = 0 if batch else quiet + 1
            if quiet >= HEARTBEAT_EVERY:
                await _say(send, b": still here\n\n")
                quiet = 0
            if len(batch) < events.BATCH:
                await asyncio.wait([gone], timeout=LOOK_EVERY_S)
            try:
                position, batch = await _look(headers, position)
            except Away:
                await send({"type": "http.response.body", "body": b"event: end\ndata: {}\n\n"})
                return


# What the other answers of the API say of the same: code, title, what to do next (config/problems.py).
PROBLEMS = {
    400: (
        "invalid",
        "A value cannot be used",
        "Send the id of the last event you have, or none to start now.",
    ),
    401: (
        "not-authenticated",
        "This credential does not work",
        "Make a new token on the page Tokens, or sign in.",
    ),
    403: ("policy-denied", "Your role does not allow this", "Make a token with the scope leases:read."),
    404: ("not-found", "There is no such thing here", "Ask the web address for anything but live events."),
    503: (
        "busy",
        "No room or no database for live events",
        "Wait a minute, then send the same Last-Event-ID.",
    ),
}
STREAM = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


def _position(text: str) -> Position | None:
    try:
        return events.read_position(text) if text else None
    except NoPosition as error:
        raise Away(400, str(error)) from None


async def _look(headers: dict[str, str], position: Position | None) -> tuple[Position, list[Event]]:
    return await sync_to_async(_batch, thread_sensitive=False)(headers, position)


def _batch(headers: dict[str, str], position: Position | None) -> tuple[Position, list[Event]]:
    """Let the visitor in anew and read what is next: who loses access is gone with the next look."""
    try:
        with transaction.atomic():
            visitor = _visitor(headers)
            if position is None:
                return events.latest(tenant_id=visitor.tenant.pk), []
            within = visitor.grants.projects("leases.read")
            found = events.after(position, tenant_id=visitor.tenant.pk, within=within)
    except (OperationalError, InterfaceError) as error:
        log.warning("event stream waits", because=str(error).strip())
        connection.close()
        if position is None:
            raise Away(503, "The database is away; try again.") from None
        return position, []
    return (found[-1].position if found else position), found


def _visitor(headers: dict[str, str]) -> Visitor:
    kind, _, text = headers.get("authorization", "").partition(" ")
    visitor = None
    if kind.lower() == "bearer":
        credential = credentials.read(text.strip())
        visitor = credential and doors.by_token(credential, request_id=KNOWN_AS, now=clock.now())
    elif "cookie" in headers:
        visitor = _by_session(headers["cookie"])
    if not visitor:
        raise Away(401, "Send a token that is valid, or sign in.")
    if not visitor.grants.anywhere("leases.read"):
        raise Away(403, "This credential may not read leases.")
    return visitor


def _by_session(cookie: str) -> Visitor | None:
    try:
        morsel = SimpleCookie(cookie).get(settings.SESSION_COOKIE_NAME)
    except CookieError:
        return None
    session = SessionStore(morsel.value) if morsel else None
    user = session and User.objects.filter(pk=session.get(SESSION_KEY, ""), is_active=True).first()
    if not session or not user:
        return None
    if not constant_time_compare(session.get(HASH_SESSION_KEY, ""), user.get_session_auth_hash()):
        return None  # the password was changed since
    return doors.by_user(user.pk, user.email, wanted=session.get(SESSION_TENANT, ""), request_id=KNOWN_AS)


def _cors(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    """Let the portal's own pages read the stream with their cookie, and nobody else's."""
    if headers.get("origin") != settings.PUBLIC_URL:
        return []
    return [
        (b"access-control-allow-origin", settings.PUBLIC_URL.encode()),
        (b"access-control-allow-credentials", b"true"),
        (b"vary", b"Origin"),
    ]


def _frame(event: Event) -> bytes:
    body = json.dumps(event.as_json(), ensure_ascii=False)
    return f"id: {event.position}\nevent: {event.type}\ndata: {body}\n\n".encode()


def _problem(status: int, detail: str) -> dict[str, Any]:
    code, title, fix = PROBLEMS[status]
    return {
        "type": f"/problems/{code}",
        "title": title,
        "status": status,
        "detail": detail,
        "instance": ADDRESS,
        "code": code,
        "request_id": KNOWN_AS,
        "fix": {"text": fix},
    }


async def _say(send: Send, text: bytes) -> None:
    async with asyncio.timeout(SLOW_S):
        await send({"type": "http.response.body", "body": text, "more_body": True})


async def _answer(
    send: Send, status: int, body: dict[str, Any], headers: list[tuple[bytes, bytes]] | None = None
) -> None:
    kind = b"application/json" if status < 400 else b"application/problem+json"
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(b"content-type", kind), *(headers or [])],
        }
    )
    await send({"type": "http.response.body", "body": json.dumps(body).encode()})


async def _hung_up(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
