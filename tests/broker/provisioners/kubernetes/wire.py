"""A server that answers from a script, for what a real one would not do on request."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import urllib3

from broker.provisioners.kubernetes.connecting import Connection
from broker.provisioners.kubernetes.transport import Api, Transport


@dataclass(frozen=True)
class Asked:
    """A request as the server saw it."""

    method: str
    path: str
    body: Any
    headers: dict[str, str]


@dataclass(frozen=True)
class Say:
    """One scripted answer; `lines` are sent as separate chunks, `hang` closes the connection instead."""

    status: int = 200
    body: Any = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    chunks: tuple[bytes, ...] = ()
    hang_up: bool = False


def refused(code: int, message: str = "", *, headers: dict[str, str] | None = None, **details: Any) -> Say:
    """Return the Status object that a server refuses with."""
    status = {"kind": "Status", "code": code, "message": message, "details": details}
    return Say(code, status, headers or {})


class Wire:
    """A scripted server: answers in order, the last one for ever."""

    def __init__(self, *script: Say) -> None:
        self.script, self.asked, self.tokens = list(script), list[Asked](), ["first"]
        wire = self

        class Answering(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                body = json.loads(sent) if sent else None
                wire.asked.append(Asked(self.command, self.path, body, dict(self.headers)))
                say = wire.script.pop(0) if len(wire.script) > 1 else wire.script[0]
                if say.hang_up:
                    self.close_connection = True
                    self.connection.shutdown(2)
                    return
                # Whoever scripts a date wants no second one beside it.
                (self.send_response_only if "Date" in say.headers else self.send_response)(say.status)
                for name, value in say.headers.items():
                    self.send_header(name, value)
                if say.chunks:
                    self.send_header("Transfer-Encoding", "chunked")
                    self.end_headers()
                    for chunk in say.chunks:
                        self.wfile.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
                    self.wfile.write(b"0\r\n\r\n")
                    return
                answer = say.body if isinstance(say.body, bytes) else json.dumps(say.body).encode()
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            do_GET = do_POST = do_PATCH = do_DELETE = answer  # noqa: N815

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        self._server.daemon_threads = True
        self.host = f"http://127.0.0.1:{self._server.server_port}"
        self.connections = 0
        self.transport = Transport(dict, connecting=self._connect)

    def _connect(self, _: object) -> Connection:
        self.connections += 1
        token = self.tokens[min(self.connections, len(self.tokens)) - 1]
        return Connection(urllib3.PoolManager(), self.host, lambda: f"Bearer {token}")

    @property
    def api(self) -> Api:
        return self.transport.within(60)

    @contextmanager
    def up(self) -> Iterator["Wire"]:
        thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield self
        finally:
            if self.transport._connection:
                self.transport._connection.pool.clear()
            self._server.shutdown()
            thread.join()
            self._server.server_close()


Serve = Callable[..., Wire]
