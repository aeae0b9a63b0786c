"""Benchmark of idle live connections: `make bench ONLY=face_streams`.

Many clients keep `/api/v1/events/stream` open while nothing happens, as browser tabs do. Counted is the CPU time of the
process that serves them and of the database server, per second, after what both take without any connection.
"""

import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from django.db import connection  # noqa: E402

from bench.figures import Figures  # noqa: E402
from bench.house_api import world  # noqa: E402
from deploy.embedded.process import Process, ProcessSpec  # noqa: E402
from ports import clock  # noqa: E402
from tests.chaos.running import free_ports  # noqa: E402
from tests.live import effort  # noqa: E402

CONNECTIONS, SECONDS, MOST_PROCESSORS = (20, 2.0, 1.0) if sys.argv[1:] == ["small"] else (400, 30.0, 0.1)
PATIENCE_S = 60.0
# Fields of a process' stat, counted from its name.
PARENT, OWN_TIME, ENDED_CHILDREN = 1, slice(11, 13), slice(13, 15)


@contextmanager
def stream_server() -> Iterator[tuple[Process, int]]:
    """Run the process of live connections; yield it with its port."""
    port = free_ports()
    command = [sys.executable, "-m", "uvicorn", "config.asgi:application", "--no-access-log", "--port", str(port)]
    log = Path(f"/tmp/gpubroker-idle-streams-{os.getpid()}.log")
    environment = os.environ | {"GPUBROKER_EVENT_STREAMS_PER_TENANT": str(2 * CONNECTIONS)}  # all are of one tenant
    process = Process(ProcessSpec("events", command, environment), log)
    process.start()
    try:
        end = time.monotonic() + PATIENCE_S
        while socket.socket().connect_ex(("127.0.0.1", port)):
            if not process.is_alive or time.monotonic() > end:
                raise RuntimeError(f"the stream server did not start:\n{process.last_words(40)}")
            time.sleep(0.1)
        yield process, port
    finally:
        process.send(signal.SIGKILL)
        process.popen.wait(10)
        process.sweep_group()
        log.unlink(missing_ok=True)


@contextmanager
def open_stream(port: int, token: str) -> Iterator[socket.socket]:
    """Open one stream, and keep it open without reading more than its beginning."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as stream:
        request = f"GET /api/v1/events/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"
        stream.sendall(request.encode())
        answer = b""
        while b"you are here" not in answer:
            part = stream.recv(4096)
            if not part:
                raise RuntimeError(f"the stream was refused: {answer[:300]!r}")
            answer += part
        yield stream


def _stat_fields(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def database_seconds() -> float:
    """Return the CPU seconds that the database server took so far.

    With those of connections that have ended.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        postmaster = int(_stat_fields(cursor.fetchone()[0])[PARENT])
    taken = 0.0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            number, fields = int(stat.parent.name), _stat_fields(int(stat.parent.name))
        except OSError:  # it ended while we looked
            continue
        if number == postmaster:
            taken += sum(map(int, fields[OWN_TIME])) + sum(map(int, fields[ENDED_CHILDREN]))
        elif int(fields[PARENT]) == postmaster:
            taken += sum(map(int, fields[OWN_TIME]))
    return taken / effort.TICKS


def processors(process: Process) -> float:
    """Return how many processors the stream server and the database use while nothing happens."""
    begun, before = clock.monotonic(), effort.seconds([process]) + database_seconds()
    time.sleep(SECONDS)
    return (effort.seconds([process]) + database_seconds() - before) / (clock.monotonic() - begun)


def main() -> None:
    figures = Figures("face_streams")
    _, token, _ = world(nodes=1)
    with stream_server() as (process, port), ExitStack() as streams:
        without = processors(process)
        for _ in range(CONNECTIONS):
            streams.enter_context(open_stream(port, token))
        time.sleep(2)
        used = processors(process) - without
    figures.report_max("processors_of_idle_streams", used, unit="processors", at_most=MOST_PROCESSORS)
    figures.exit_with_status()


if __name__ == "__main__":
    main()
