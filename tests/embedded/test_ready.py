"""Readiness checks of the processes."""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import psycopg
import pytest

from config import queues
from deploy.embedded import folders, product_processes
from deploy.embedded.process import ProcessSpec
from deploy.embedded.product_processes import ProductInstallation
from deploy.embedded.roles import Server
from deploy.embedded.valkey import Valkey
from tests.database import OwnDatabase

Labour = Callable[[], dict[str, ProcessSpec]]


@pytest.fixture
def installed(tmp_path: Path, port: int) -> ProductInstallation:
    places = folders.create_directories(tmp_path, servers=None, products=None)
    valkey = Valkey("valkey-server", places.valkey, places.sockets)
    return ProductInstallation(places, Server("postgresql://boss@db.example/x"), valkey, "127.0.0.1", port)


@pytest.fixture
def labour(installed: ProductInstallation) -> Labour:
    """Return a function that describes background processes."""
    return lambda: {part.name: part for part in installed.background_processes()}


def test_every_process_has_its_own_readiness_check(installed: ProductInstallation) -> None:
    trusted = ProcessSpec.__dataclass_fields__["ready"].default
    parts = {part.name: part for part in (*installed.web_processes(), *installed.background_processes())}
    assert set(parts) == {"web", "events", "worker", "background-worker", "beat", "relay", "log-collector"}
    assert {name for name, part in parts.items() if part.ready is trusted} == set()


def test_workers_run_without_the_heartbeat_of_celery(labour: Labour) -> None:
    """Celery's own heartbeat would retry for ever then."""
    for name in ("worker", "background-worker"):
        assert "--without-heartbeat" in labour()[name].command


def test_leases_have_a_worker_of_their_own_and_every_queue_has_one(labour: Labour) -> None:
    served = {name: _queues(labour()[name].command) for name in ("worker", "background-worker")}
    assert served["worker"] == [queues.LIFECYCLE.name]
    assert served["background-worker"] == [*(queue.name for queue in queues.QUEUES[1:]), "celery"]


def _queues(command: Sequence[str]) -> list[str]:
    return command[command.index("--queues") + 1].split(",")


@contextmanager
def answering(port: int, status: int) -> Iterator[list[str]]:
    """Answer every request at a port with a status, and record the paths."""
    requests: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requests.append(self.path)
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", port), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield requests
        finally:
            server.shutdown()
            thread.join()


def test_a_web_process_is_ready_once_it_answers_with_200(installed: ProductInstallation) -> None:
    for number, (web_process, path) in enumerate(zip(installed.web_processes(), ("/ready", "/health"), strict=True)):
        assert not web_process.ready(None)  # type: ignore[arg-type]
        for status in (503, 200):
            with answering(installed.port + number, status) as wanted:
                assert web_process.ready(None) == (status == 200)  # type: ignore[arg-type]
            assert wanted == [path]


def test_beat_is_ready_once_it_has_written_its_schedule_file(labour: Labour, tmp_path: Path) -> None:
    timetable = tmp_path / "files/beat-schedule.db"
    first = labour()["beat"]
    assert not first.ready(None)  # type: ignore[arg-type]
    timetable.write_text("entries")
    assert first.ready(None)  # type: ignore[arg-type]
    second = labour()["beat"]
    assert not second.ready(None)  # type: ignore[arg-type]
    os.utime(timetable, ns=(0, timetable.stat().st_mtime_ns + 1))
    assert second.ready(None)  # type: ignore[arg-type]


def test_the_relay_is_ready_once_it_has_queried_its_messages(
    labour: Labour, own_database: OwnDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = own_database.worker_url
    monkeypatch.setattr(Server, "login", lambda self, role, database: url)
    monkeypatch.setattr(product_processes, "DATABASE", own_database.name)
    relay = labour()["relay"]
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("SELECT count(*) FROM ports_outboxmessage")
        assert not relay.ready(None)  # type: ignore[arg-type]
    name = relay.env["PGAPPNAME"]
    with psycopg.connect(url, application_name=name, autocommit=True) as session:
        session.execute("LISTEN gpubroker_outbox")
        assert not relay.ready(None)  # type: ignore[arg-type]
        session.execute("SELECT count(*) FROM ports_outboxmessage")
        assert relay.ready(None)  # type: ignore[arg-type]


def test_a_relay_whose_database_is_away_is_not_ready(
    labour: Labour, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Server, "login", lambda self, role, database: f"postgresql://worker@127.0.0.1:{port}/gone")
    assert not labour()["relay"].ready(None)  # type: ignore[arg-type]
