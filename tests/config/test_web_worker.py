"""The web server answers while many clients send nothing, half a request, or read nothing."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
import yaml

from deploy.embedded.folders import CHECKOUT

WORKER = "config.web_worker.BufferingWorker"
CLIENTS = 60
HALF_REQUESTS = {
    "nothing is sent": b"",
    "half a header": b"GET / HTTP/1.1\r\nHost: x\r\nX-Half: ",
    "half a body": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nabc",
    "a large response is not read": b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n",
}


class WebServer:
    """The product's web server, in two processes of two threads."""

    def __init__(self, *options: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [sys.executable, "-m", "gunicorn", "tests.config.served_app:application", "--no-control-socket"]
        command += ["--bind", f"127.0.0.1:{self.port}", "--workers", "2", "--threads", "2", "--worker-class", WORKER]
        command += ["--graceful-timeout", "5", "--log-level", "warning", *options]
        self.process = subprocess.Popen(command, cwd=CHECKOUT)
        self.clients: list[socket.socket] = []
        for _ in range(100):
            try:
                self.get()
            except OSError:
                time.sleep(0.1)
            else:
                return
        pytest.fail("the web server did not start")

    def get(self, path: str = "/", body: bytes | None = None, **headers: str) -> str:
        request = Request(f"http://127.0.0.1:{self.port}{path}", data=body, headers=headers)
        with urlopen(request, timeout=5) as response:
            return str(response.read().decode())

    def connect(self, sent: bytes) -> None:
        client = socket.create_connection(("127.0.0.1", self.port), timeout=5)
        client.sendall(sent)
        self.clients.append(client)

    def workers(self) -> list[int]:
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [int(each) for each in children]

    def stop(self) -> None:
        for client in self.clients:
            client.close()
        self.process.kill()
        self.process.wait()


@pytest.fixture
def server() -> Iterator[WebServer]:
    started = WebServer()
    yield started
    started.stop()


@pytest.mark.parametrize("sent", HALF_REQUESTS.values(), ids=HALF_REQUESTS)
def test_slow_clients_do_not_stop_others(server: WebServer, sent: bytes) -> None:
    for _ in range(CLIENTS if b"large" not in sent else 8):
        server.connect(sent)
    time.sleep(0.3)
    for _ in range(5):
        began = time.monotonic()
        assert server.get() == "http 0"
        assert time.monotonic() - began < 2


def test_bodies_arrive_whole_and_too_large_ones_are_refused(server: WebServer) -> None:
    assert server.get(body=b"x" * 900_000) == "http 900000"
    with pytest.raises((HTTPError, OSError)):
        server.get(body=b"x" * 11_000_000)
    assert server.get() == "http 0"


def test_a_proxy_says_that_a_request_came_by_https(server: WebServer) -> None:
    assert server.get(**{"X-Forwarded-Proto": "https"}) == "https 0"


def test_a_request_under_way_is_answered_when_the_server_stops(server: WebServer) -> None:
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(server.get, "/slow")
        time.sleep(0.4)
        server.process.terminate()
        assert answer.result() == "http 0"
    assert server.process.wait(10) == 0


def test_workers_end_when_their_parent_is_killed(server: WebServer) -> None:
    for _ in range(100):
        if len(workers := server.workers()) == 2:
            break
        time.sleep(0.1)
    assert len(workers) == 2
    server.get()
    os.kill(server.process.pid, signal.SIGKILL)
    server.process.wait()
    for _ in range(50):
        if not any(Path(f"/proc/{each}/cmdline").exists() and _runs(each) for each in workers):
            return
        time.sleep(0.1)
    pytest.fail("a worker runs without its parent")


def _runs(pid: int) -> bool:
    try:
        return b"gunicorn" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def test_every_installation_serves_with_this_worker() -> None:
    compose = yaml.safe_load((CHECKOUT / "deploy/compose.yaml").read_text())
    assert WORKER in compose["services"]["web"]["command"]
    for file in ("deploy/chart/templates/web.yaml", "deploy/embedded/product_processes.py"):
        assert f'"{WORKER}"' in (CHECKOUT / file).read_text()
