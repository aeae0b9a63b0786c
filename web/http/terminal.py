"""WebSocket `/api/v1/terminals/<lease>`: a shell in an active lease.

Binary messages carry keys and output. Text messages are JSON: the browser sends its size, and the server
closes with a code and a sentence. No database connection is held while a terminal is open; the visitor is
authenticated again every few seconds.
"""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs

import structlog
from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import InterfaceError, OperationalError, connection, transaction

from broker.provisioners.terminals import Terminal, TerminalSize, TerminalUnavailable
from broker.services.leases import lease_terminals
from broker.services.leases.lease_terminals import TerminalTarget
from broker.services.leases.terminal_connections import connect_terminal
from ports import clock
from tenants.services.errors import ProblemError
from tenants.services.rls import tenant_scope
from web.http.event_stream import Receive, Scope, Send
from web.http.stream_authentication import StreamRefused, authenticate_headers, has_token

log = structlog.get_logger(__name__)
TERMINAL_PATH = re.compile(r"/api/v1/terminals/(lse_[0-9a-z]{1,40})", re.ASCII)
REQUEST_ID = "terminal"
MAX_OF_PROCESS, MAX_OF_TENANT, MAX_OF_LEASE = 200, 40, 10
MAX_KEYS = 64 * 1024  # bytes of one message
MAX_CONTROL = 1024  # characters of one text message
CHECK_INTERVAL_S = 10.0  # until the visitor is authenticated again
MAX_FAILED_CHECKS = 3  # in a row, while the database is unavailable
IDLE_S = 30 * 60.0  # without keys and output
MAX_OPEN_S = 12 * 3600.0
SEND_TIMEOUT_S = 30.0  # a browser that accepts nothing for so long is disconnected
NORMAL, GOING_AWAY, TOO_LARGE, FAILED = 1000, 1001, 1009, 1011
REFUSED_CODES = {401: 4401, 403: 4403, 404: 4404, 409: 4409, 429: 4429, 503: 4503}
IDLE_CODE, LIMIT_CODE = 4408, 4429
MAX_REASON_BYTES = 123  # of a close message


class TerminalClosed(Exception):
    """The terminal ends; has the close code and the sentence for people."""

    def __init__(self, code: int, why: str) -> None:
        super().__init__(why)
        self.code, self.why = code, why


class TerminalApp:
    """The ASGI application for terminals."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()  # terminals by lease, tenant and in all

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one WebSocket from its handshake to its end."""
        await receive()  # websocket.connect
        path = TERMINAL_PATH.fullmatch(scope["path"])
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        if path is None or not _is_own_origin(headers):
            await send({"type": "websocket.close"})  # before the handshake: HTTP 403
            return
        await send({"type": "websocket.accept"})
        try:
            await self._serve(path[1], headers, _size_in_query(scope), receive, send)
        except TerminalClosed as closed:
            await _close(send, closed.code, closed.why)

    async def _serve(
        self, lease_id: str, headers: dict[str, str], size: TerminalSize, receive: Receive, send: Send
    ) -> None:
        target = await _in_thread(_find_target, headers, lease_id, None)
        with self._counted(target):
            await _in_thread(_record_start, target)
            started, why = clock.now(), "the server stopped"
            try:
                with _refusals():
                    terminal = await connect_terminal(target, size)
                why = await _Relay(terminal, target, headers, receive, send).run()
                raise TerminalClosed(NORMAL, why)
            except TerminalUnavailable as error:
                why = str(error)
                raise TerminalClosed(FAILED, why) from None
            except TerminalClosed as closed:
                why = closed.why
                raise
            finally:
                await asyncio.shield(_in_thread(_record_end, target, started, why))

    @contextmanager
    def _counted(self, target: TerminalTarget) -> Iterator[None]:
        limits = {target.lease.pk: MAX_OF_LEASE, target.lease.tenant_id: MAX_OF_TENANT, "": MAX_OF_PROCESS}
        if any(self._open[name] >= limit for name, limit in limits.items()):
            raise TerminalClosed(LIMIT_CODE, "Too many terminals are open. Close one and try again.")
        self._open.update(limits.keys())
        try:
            yield
        finally:
            self._open.subtract(limits.keys())
            self._open += Counter()  # forgets zeros


class _Relay:
    """Passes keys and output between a browser and a terminal until one of them ends."""

    def __init__(
        self, terminal: Terminal, target: TerminalTarget, headers: dict[str, str], receive: Receive, send: Send
    ) -> None:
        self._terminal, self._target, self._headers = terminal, target, headers
        self._receive, self._send = receive, send
        self._active_at = clock.monotonic()

    async def run(self) -> str:
        """Return why it ended; raise TerminalClosed where the browser must be told another code."""
        tasks = [asyncio.ensure_future(each) for each in (self._pass_output(), self._pass_keys(), self._watch())]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            return next(task.result() for task in tasks if task in done)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._terminal.close()

    async def _pass_output(self) -> str:
        while shown := await self._terminal.read():
            self._active_at = clock.monotonic()
            try:
                async with asyncio.timeout(SEND_TIMEOUT_S):
                    await self._send({"type": "websocket.send", "bytes": shown})
            except TimeoutError:
                raise TerminalClosed(GOING_AWAY, "The browser stopped reading.") from None
        return self._terminal.end_reason or "the shell ended"

    async def _pass_keys(self) -> str:
        while True:
            message = await self._receive()
            if message["type"] == "websocket.disconnect":
                return "the browser disconnected"
            keys, text = message.get("bytes"), message.get("text")
            if len(keys or b"") > MAX_KEYS or len(text or "") > MAX_CONTROL:
                raise TerminalClosed(TOO_LARGE, "A message was too large.")
            self._active_at = clock.monotonic()
            if keys:
                await self._terminal.write(keys)
            elif text and (size := _parse_size(text)):
                await self._terminal.resize(size)

    async def _watch(self) -> str:
        """Wait until the visitor loses access, the lease ends, or nobody uses the terminal."""
        begun, failed = clock.monotonic(), 0
        while True:
            await asyncio.sleep(CHECK_INTERVAL_S)
            now = clock.monotonic()
            if now - self._active_at > IDLE_S:
                raise TerminalClosed(IDLE_CODE, f"The terminal was not used for {IDLE_S // 60:.0f} minutes.")
            if now - begun > MAX_OPEN_S:
                raise TerminalClosed(IDLE_CODE, f"A terminal is open for at most {MAX_OPEN_S // 3600:.0f} hours.")
            try:
                await _in_thread(_find_target, self._headers, self._target.lease.pk, self._target)
                failed = 0
            except TerminalClosed as closed:
                failed += 1
                if closed.code != REFUSED_CODES[503] or failed >= MAX_FAILED_CHECKS:
                    raise


class LiveConnectionsApp:
    """ASGI application of live connections: events over HTTP, terminals over WebSocket."""

    def __init__(self, events: Any, terminals: Any) -> None:
        self._events, self._terminals = events, terminals

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a connection to the application of its kind."""
        await (self._terminals if scope["type"] == "websocket" else self._events)(scope, receive, send)


def _is_own_origin(headers: dict[str, str]) -> bool:
    """Return whether no foreign page opened the connection with its visitor's cookie."""
    return has_token(headers) or headers.get("origin") == settings.PUBLIC_URL


async def _in_thread(function: Any, *arguments: Any) -> Any:
    return await sync_to_async(function, thread_sensitive=False)(*arguments)


def _find_target(headers: dict[str, str], lease_id: str, earlier: TerminalTarget | None) -> TerminalTarget:
    """Authenticate the visitor and return the lease; raise TerminalClosed without access."""
    with _refusals(), transaction.atomic():
        tenant_id = earlier.lease.tenant_id if earlier else ""
        visitor = authenticate_headers(headers, request_id=REQUEST_ID, tenant_id=tenant_id)
        generation = earlier.generation if earlier else None
        return lease_terminals.find_terminal_target(visitor, lease_id, generation=generation)


def _record_start(target: TerminalTarget) -> None:
    with _refusals(), tenant_scope(target.lease.tenant_id):
        lease_terminals.record_terminal_start(target, now=clock.now())


def _record_end(target: TerminalTarget, started: datetime, why: str) -> None:
    log.info("terminal closed", lease=target.lease.pk, actor=target.visitor.actor.id, because=why)
    with suppress(TerminalClosed), _refusals(), tenant_scope(target.lease.tenant_id):
        lease_terminals.record_terminal_end(target, started=started, now=clock.now(), why=why)


@contextmanager
def _refusals() -> Iterator[None]:
    """Raise every refusal as TerminalClosed, with a sentence that also says what to do."""
    try:
        yield
    except StreamRefused as refused:
        raise TerminalClosed(REFUSED_CODES[refused.status], refused.why) from None
    except ProblemError as refused:
        code = REFUSED_CODES.get(refused.status, REFUSED_CODES[409])
        raise TerminalClosed(code, f"{refused.detail} {refused.fix.text}") from None
    except (OperationalError, InterfaceError) as error:
        log.warning("terminal waiting", because=str(error).strip())
        connection.close()
        raise TerminalClosed(REFUSED_CODES[503], "The database is unavailable. Try again.") from None


def _size_in_query(scope: Scope) -> TerminalSize:
    query = parse_qs(scope["query_string"].decode("latin-1"))
    return _size({name: query.get(name, [""])[0] for name in ("columns", "rows")}) or TerminalSize()


def _parse_size(text: str) -> TerminalSize | None:
    with suppress(ValueError, RecursionError):
        message = json.loads(text)
        if isinstance(message, dict) and message.get("type") == "resize":
            return _size(message)
    return None


def _size(values: dict[str, Any]) -> TerminalSize | None:
    columns, rows = (str(values.get(name, "")) for name in ("columns", "rows"))
    if not all(each.isascii() and each.isdigit() and len(each) < 6 for each in (columns, rows)):
        return None
    return TerminalSize.bounded(int(columns), int(rows))


async def _close(send: Send, code: int, why: str) -> None:
    """Close with a code and as much of the sentence as fits."""
    reason = why.encode()[:MAX_REASON_BYTES].decode(errors="ignore")
    with suppress(RuntimeError, OSError):  # the browser is gone already
        await send({"type": "websocket.close", "code": code, "reason": reason})
