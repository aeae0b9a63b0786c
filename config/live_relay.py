"""Relay of live connections from the web server's port to the events process.

Streams of events and terminals last for hours, and a thread of the web server must not wait for them: its loop moves
their bytes between two sockets. So they are on the same origin as pages and API without any proxy in front.
"""

import json
import re
import socket
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from waitress import wasyncore
from waitress.channel import HTTPChannel

LIVE_PATHS = (b"/api/v1/events/stream", b"/api/v1/events/logs/", b"/api/v1/terminals/")
LIVE_STARTS = tuple(method + b" " + path for method in (b"GET", b"OPTIONS") for path in LIVE_PATHS)
HEAD_END = b"\r\n\r\n"
CONNECTION_LINE = re.compile(rb"\r\nconnection:[^\r\n]*", re.IGNORECASE)
UPGRADE_LINE = re.compile(rb"\r\nupgrade: *websocket *\r\n", re.IGNORECASE)
MAX_HEAD, BUFFER, MAX_RELAYS = 64 * 1024, 64 * 1024, 600
CONNECT_TIMEOUT_S = 5.0
SocketMap = dict[int, object]
UNAVAILABLE = {
    "type": "/problems/busy",
    "title": "Live events are not available now",
    "status": 503,
    "detail": "The process that sends live events does not answer, or has too many connections.",
    "instance": "",
    "code": "busy",
    "request_id": "",
    "fix": {"text": "Wait a minute, then send the same Last-Event-ID."},
}


def is_live(head: bytes) -> bool | None:
    """Return whether a request is for the events process; None while undecided."""
    if head.startswith(LIVE_STARTS):
        return True if HEAD_END in head else None
    return None if any(start.startswith(head) for start in LIVE_STARTS) else False


def head_for_one_request(head: bytes) -> bytes:
    """Return a head after whose response the connection is closed, but for WebSockets.

    The next request of the client may be for the web server again.
    """
    if UPGRADE_LINE.search(head):
        return head
    line, _, fields = CONNECTION_LINE.sub(b"", head).partition(b"\r\n")
    return line + b"\r\nConnection: close\r\n" + fields


class LiveRelays:
    """The live connections of one web process."""

    def __init__(self, host: str, port: int, connections: SocketMap, wake: Callable[[], None]) -> None:
        self._address, self._map, self._wake = (host, port), connections, wake
        self._connecting = ThreadPoolExecutor(2, thread_name_prefix="live-relay")  # names are resolved here
        self._ready: list[tuple[socket.socket, bytes, Future[socket.socket]]] = []
        self.open = 0

    def start(self, client: socket.socket, head: bytes) -> None:
        """Take over a client's socket, with the head of its request."""
        if self.open >= MAX_RELAYS:
            refuse(client)
            return
        self.open += 1
        connected = self._connecting.submit(socket.create_connection, self._address, CONNECT_TIMEOUT_S)
        self._ready.append((client, head, connected))
        connected.add_done_callback(lambda _: self._wake())

    def pass_connected(self) -> None:
        """Begin to relay the connections that are established."""
        for each in [each for each in self._ready if each[2].done()]:
            self._ready.remove(each)
            client, head, connected = each
            if connected.exception() is not None:
                self.open -= 1
                refuse(client)
                continue
            _join(client, connected.result(), head, self)

    def stop(self) -> None:
        """Stop taking connections."""
        self._connecting.shutdown(wait=False, cancel_futures=True)


class _RelayEnd(wasyncore.dispatcher):  # type: ignore[misc]  # waitress has no types
    """One of two sockets; what it reads is written to the other."""

    peer: "_RelayEnd"

    def __init__(self, sock: socket.socket, relays: LiveRelays, unsent: bytes = b"") -> None:
        super().__init__(sock, map=relays._map)
        self.connected = True
        self._relays, self._unsent, self._ends = relays, bytearray(unsent), False

    def readable(self) -> bool:
        return len(self.peer._unsent) < BUFFER and not self._ends

    def writable(self) -> bool:
        return bool(self._unsent)

    def handle_read(self) -> None:
        data = self.recv(BUFFER)
        if data:
            self.peer._unsent += data
        else:  # closed there; wasyncore has called handle_close
            self.handle_close()

    def handle_write(self) -> None:
        sent = self.send(bytes(self._unsent))
        del self._unsent[:sent]
        if self._ends and not self._unsent:
            self.handle_close()

    def handle_close(self) -> None:
        if self._fileno is None or self.socket is None:
            return
        self.close()
        peer = self.peer
        if peer.socket is None or peer._fileno is None:
            self._relays.open -= 1
        elif peer._unsent:
            peer._ends = True  # it still sends what it has
        else:
            peer.handle_close()

    def handle_error(self) -> None:
        self.handle_close()


def _join(client: socket.socket, upstream: socket.socket, head: bytes, relays: LiveRelays) -> None:
    upstream.setblocking(False)
    one, other = _RelayEnd(client, relays), _RelayEnd(upstream, relays, head)
    one.peer, other.peer = other, one


def refuse(client: socket.socket) -> None:
    """Answer that live events are unavailable, and close."""
    body = json.dumps(UNAVAILABLE).encode()
    head = (
        b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\nRetry-After: 60\r\n"
        b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
    )
    try:
        client.send(head + body)
    except OSError:
        pass  # the client is gone
    finally:
        client.close()


class RelayingChannel(HTTPChannel):  # type: ignore[misc]  # waitress has no types
    """Connection whose requests waitress serves, but for live ones."""

    socket: Any
    _head = b""

    def received(self, data: bytes) -> bool:
        """Take bytes of the client; a live request takes the connection with it."""
        if self.request is not None or self.requests or not data:
            return bool(super().received(data))
        head, self._head = self._head + data, b""
        live = is_live(head)
        if live is None and len(head) <= MAX_HEAD:
            self._head = head
            return True
        if not live:
            return bool(super().received(head))
        client = self.socket
        self.connected = False
        self.del_channel()
        self.socket = None
        self.server.relays.start(client, head_for_one_request(head))
        return True
