"""An API server that answers from a script."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import urllib3

from broker.provisioners.kubernetes.client.api_connection import ApiConnection
from broker.provisioners.kubernetes.client.transport import KubernetesApi, Transport


@dataclass(frozen=True)
class ReceivedRequest:
    """A request as the server saw it."""

    method: str
    path: str
    body: Any
    headers: dict[str, str]


@dataclass(frozen=True)
class ScriptedAnswer:
    """One scripted answer; `lines` are sent as separate chunks, `hang` closes the connection instead."""

    status: int = 200
    body: Any = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    chunks: tuple[bytes, ...] = ()
    hang_up: bool = False


def error_status(
    code: int, message: str = "", *, headers: dict[str, str] | None = None, **details: Any
) -> ScriptedAnswer:
    """Return the Status object that a server refuses with."""
    status = {"kind": "Status", "code": code, "message": message, "details": details}
    return ScriptedAnswer(code, status, headers or {})


class ScriptedServer:
    """A scripted server: answers in order, the last one for ever."""

    def __init__(self, *script: ScriptedAnswer) -> None:
        self.script, self.requests, self.tokens = list(script), list[ReceivedRequest](), ["first"]
        wire = self

        class Answering(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                body = json.loads(sent) if sent else None
                wire.requests.append(ReceivedRequest(self.command, self.path, body, dict(self.headers)))
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

    def _connect(self, _: object) -> ApiConnection:
        self.connections += 1
        token = self.tokens[min(self.connections, len(self.tokens)) - 1]
        return ApiConnection(urllib3.PoolManager(), self.host, lambda: f"Bearer {token}")

    @property
    def api(self) -> KubernetesApi:
        return self.transport.within(60)

    @contextmanager
    def up(self) -> Iterator["ScriptedServer"]:
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


StartServer = Callable[..., ScriptedServer]
