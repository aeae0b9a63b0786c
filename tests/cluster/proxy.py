"""A proxy before a real API server that injects faults."""

import json
import re
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import urllib3

from tests.controlplane.api import Api, Object
from tests.controlplane.plane import ADMINISTRATORS, ControlPlane


@dataclass
class Fault:
    """A fault of the next few requests whose method and path match."""

    what: str  # such as "POST .*/configmaps$"
    status: int = 0
    body: Object = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    times: int = 1
    before: Callable[[], None] | None = None  # runs first: something else in the cluster was quicker
    hangs_s: float = 0.0
    line: Object | Callable[[], Object] | None = None  # instead of a watch: this one event, and the end
    after: bool = False  # let the server do it, and lose its answer
    name: str = ""  # of what is played, where that is counted


class Proxy:
    """A proxy with a queue of faults."""

    def __init__(self, plane: ControlPlane) -> None:
        self.faults: list[Fault] = []
        self.requests: list[str] = []
        self._choosing = threading.Lock()
        kubeconfig = plane.kubeconfig("admin", ADMINISTRATORS)
        self._real = Api(kubeconfig)
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # else each answer waits 40 ms between its head and its body
            wbufsize = 2**16

            def do_GET(self) -> None:
                proxy._serve(self)

            do_POST = do_PATCH = do_DELETE = do_GET  # noqa: N815  # as http.server calls them

            def log_message(self, *_: Any) -> None:
                return

        class ProxyServer(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: Any) -> None:
                """Ignore clients that hung up."""

        self._server = ProxyServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(plane.folder / "server.crt", plane.folder / "server.key")
        self._server.socket = context.wrap_socket(
            self._server.socket,
            server_side=True,
            do_handshake_on_connect=False,  # by each request's own thread: one that stalls holds up nobody
        )
        self.kubeconfig = json.loads(json.dumps(kubeconfig))
        self.kubeconfig["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> "Proxy":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def fails(self, what: str, status: int = 0, **more: Any) -> Fault:
        """Add a fault; return it to count its uses."""
        fault = Fault(what, status, **more)
        self.faults.append(fault)
        return fault

    def _choose(self, wanted: str) -> Fault | None:
        with self._choosing:
            self.requests.append(wanted)
            for fault in self.faults:
                if fault.times > 0 and re.match(fault.what, wanted):
                    fault.times -= 1
                    return fault
        return None

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        fault = self._choose(f"{handler.command} {handler.path}")
        if fault and fault.before:
            fault.before()
        if fault and fault.hangs_s:
            time.sleep(fault.hangs_s)
        if fault and fault.after:
            self._ask(handler, body).drain_conn()
            handler.close_connection = True
        elif fault and fault.line is not None:
            line = fault.line() if callable(fault.line) else fault.line
            self._answer(handler, 200, json.dumps(line).encode() + b"\n", {})
        elif fault and fault.status:
            status = {"kind": "Status", "status": "Failure", "code": fault.status, **fault.body}
            self._answer(handler, fault.status, json.dumps(status).encode(), fault.headers)
        elif fault and not fault.before:
            handler.close_connection = True  # hung up without a word
        else:
            self._pass_on(handler, body)

    def _ask(self, handler: BaseHTTPRequestHandler, body: bytes) -> urllib3.BaseHTTPResponse:
        kept = ("Accept", "Content-Type", "User-Agent")
        headers = {name: handler.headers[name] for name in kept if handler.headers[name]}
        return self._real._pool.request(
            handler.command,
            self._real.server + handler.path,
            body=body or None,
            headers=headers,
            preload_content=False,
            timeout=120,
        )

    def _pass_on(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        try:
            real = self._ask(handler, body)
            if "watch=true" not in handler.path:
                self._answer(handler, real.status, real.read(), {})
                return
            handler.send_response(real.status)
            handler.send_header("Content-Type", "application/json")
            handler.send_header("Transfer-Encoding", "chunked")
            handler.end_headers()
            for piece in real.stream(2**16):
                handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                handler.wfile.flush()
            handler.wfile.write(b"0\r\n\r\n")
        except (OSError, urllib3.exceptions.HTTPError):
            handler.close_connection = True

    def _answer(self, handler: BaseHTTPRequestHandler, status: int, body: bytes, headers: dict[str, str]) -> None:
        handler.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)
