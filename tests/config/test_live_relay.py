"""The web server passes live connections on to the events process."""

import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from config.live_relay import head_for_one_request, is_live
from tests.config.served_app import UPSTREAM
from tests.config.test_web_worker import WebServer

STREAMS = 40  # more than the web server has threads
LARGE = 3_000_000


class EventsProcess(BaseHTTPRequestHandler):
    """Stand-in of the events process: an endless stream, a large response, or a short one."""

    protocol_version = "HTTP/1.1"
    go_on = threading.Event()

    def do_GET(self) -> None:
        if self.headers.get("Upgrade"):
            self.wfile.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
            self.wfile.write(self.rfile.read(4).upper())
            self.close_connection = True
            return
        large = "logs" in self.path
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("X-Path", self.path)
        self.send_header("X-Connection", self.headers.get("Connection", ""))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(b"x" * LARGE if large else b"id: 1\n\n")
        self.wfile.flush()
        if not large:
            self.go_on.wait(10)
            self.wfile.write(b"id: 2\n\n")

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[WebServer]:
    EventsProcess.go_on.clear()
    events = ThreadingHTTPServer(("127.0.0.1", 0), EventsProcess)
    threading.Thread(target=events.serve_forever, daemon=True).start()
    monkeypatch.setenv(UPSTREAM, f"127.0.0.1:{events.server_address[1]}")
    started = WebServer()
    yield started
    EventsProcess.go_on.set()
    started.stop()
    events.shutdown()
    events.server_close()


def ask(server: WebServer, request: bytes) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", server.port), timeout=5)
    client.sendall(request)
    server.clients.append(client)
    return client


def read_until(client: socket.socket, end: bytes) -> bytes:
    read = b""
    while not read.endswith(end):
        if not (more := client.recv(65_536)):
            break
        read += more
    return read


def read_all(client: socket.socket) -> bytes:
    return read_until(client, b"\0never\0")


STREAM = b"GET /api/v1/events/stream?cursor=3 HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\nCookie: a=b\r\n\r\n"


def test_streams_are_open_on_the_port_of_the_api_and_take_no_thread(server: WebServer) -> None:
    clients = [ask(server, STREAM) for _ in range(STREAMS)]
    for client in clients:
        first = read_until(client, b"id: 1\n\n")
        assert b"X-Path: /api/v1/events/stream?cursor=3" in first
    assert server.get() == "http 0"
    EventsProcess.go_on.set()
    assert all(read_all(client).endswith(b"id: 2\n\n") for client in clients)


def test_a_connection_ends_with_its_stream_so_that_no_page_is_asked_of_the_events_process(server: WebServer) -> None:
    EventsProcess.go_on.set()
    answer = read_all(ask(server, STREAM))  # to its end: the connection is closed
    assert b"X-Connection: close" in answer


def test_a_request_that_arrives_in_pieces_is_passed_on(server: WebServer) -> None:
    client = ask(server, STREAM[:9])
    for start in range(9, len(STREAM), 13):
        time.sleep(0.02)
        client.sendall(STREAM[start : start + 13])
    assert b"id: 1" in read_until(client, b"id: 1\n\n")


def test_large_logs_reach_a_reader_that_is_slow(server: WebServer) -> None:
    client = ask(server, b"GET /api/v1/events/logs/lse_1 HTTP/1.1\r\nHost: x\r\n\r\n")
    time.sleep(0.5)
    assert read_all(client).count(b"x" * 1000) >= LARGE // 1000 - 1


def test_web_sockets_keep_their_connection(server: WebServer) -> None:
    client = ask(
        server,
        b"GET /api/v1/terminals/lse_1 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    )
    assert b"101 Switching" in read_until(client, b"\r\n\r\n")
    client.sendall(b"keys")
    assert read_all(client) == b"KEYS"


def test_without_the_events_process_the_answer_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv(UPSTREAM, f"127.0.0.1:{free.getsockname()[1]}")
    server = WebServer()
    try:
        answer = read_all(ask(server, STREAM))
        assert answer.startswith(b"HTTP/1.1 503")
        assert b"Retry-After: 60" in answer
        assert server.get() == "http 0"
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("head", "live"),
    [
        (b"GE", None),
        (b"GET /api/v1/ev", None),
        (b"GET /api/v1/events/stream HTTP/1.1\r\n", None),
        (b"GET /api/v1/events/stream HTTP/1.1\r\nA: b\r\n\r\n", True),
        (b"OPTIONS /api/v1/events/stream HTTP/1.1\r\n\r\n", True),
        (b"GET /api/v1/events HTTP/1.1\r\n\r\n", False),
        (b"POST /api/v1/events/stream HTTP/1.1\r\n\r\n", False),
        (b"GET / HTTP/1.1\r\n", False),
    ],
)
def test_only_live_paths_are_passed_on(head: bytes, live: bool | None) -> None:
    assert is_live(head) is live


def test_a_passed_on_head_asks_to_close_and_keeps_the_rest() -> None:
    head = head_for_one_request(STREAM)
    assert head.count(b"onnection:") == 1
    assert b"\r\nConnection: close\r\n" in head
    assert head.endswith(b"Cookie: a=b\r\n\r\n")
