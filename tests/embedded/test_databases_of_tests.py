"""Databases of the test suite."""

import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path

import pytest
from django.contrib.contenttypes.models import ContentType
from django.db import connection, connections
from kombu import Connection

from tests import postgres_server, serve_postgres, session
from tests.database import OwnDatabase


def roles_of(alias: str) -> tuple[str, bool, bool]:
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT current_user, rolsuper, rolbypassrls FROM pg_roles WHERE rolname = current_user")
        row = cursor.fetchone()
    assert row
    return row[0], row[1], row[2]


@pytest.mark.django_db(databases=["default", "owner"])
def test_tests_log_in_as_the_application_and_never_as_superuser() -> None:
    assert roles_of("default") == ("gpubroker_web", False, False)
    assert roles_of("owner") == ("gpubroker_owner", False, False)


@pytest.mark.django_db
def test_the_application_owns_no_table() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'public'")
        owners = {row[0] for row in cursor.fetchall()}
    assert owners == {"gpubroker_owner"}


def count_own_tables() -> int:
    with connections["owner"].cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_tables WHERE tablename LIKE 'scratch%%'")
        row = cursor.fetchone()
    assert row
    return int(row[0])


@pytest.mark.parametrize("run", [1, 2])
def test_an_own_database_contains_no_commits_of_earlier_tests(own_database: OwnDatabase, run: int) -> None:
    assert count_own_tables() == 0
    with connections["owner"].cursor() as cursor:
        cursor.execute("CREATE TABLE scratch (id int)")
    connections["owner"].close()
    assert count_own_tables() == 1


def test_threads_use_the_own_database_of_the_test(own_database: OwnDatabase) -> None:
    seen: list[str] = []

    def look() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_database()")
            seen.append(cursor.fetchone()[0])
        connection.close()

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [own_database.name]


class Slow:
    """A server that answers at the third try."""

    tries = 0

    def responds(self) -> bool:
        self.tries += 1
        return self.tries > 2


@pytest.fixture
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Use a separate server folder for the test."""
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setattr(postgres_server, "folder", lambda: tmp_path / "server")
    (tmp_path / "server" / "sessions").mkdir(parents=True)
    return tmp_path / "server"


def serving(pid: int, started: str) -> postgres_server.RunningServer:
    found = postgres_server.RunningServer(pid, started)
    (postgres_server.folder() / "server.json").write_text(json.dumps(asdict(found)))
    return found


def test_a_slowly_answering_server_is_not_started_twice(monkeypatch: pytest.MonkeyPatch, own_folder: Path) -> None:
    slow, begun = Slow(), list[int]()

    def spawn() -> postgres_server.RunningServer:
        begun.append(os.getpid())
        return serving(os.getpid(), postgres_server.process_start(os.getpid()))

    monkeypatch.setattr(postgres_server, "cluster", lambda: slow)
    monkeypatch.setattr(postgres_server, "_spawn", spawn)
    postgres_server.start()
    assert (slow.tries, len(begun)) == (3, 1)
    slow.tries = 0  # the machine stands still, and another worker comes
    postgres_server.start()
    assert (slow.tries, len(begun)) == (3, 1)
    assert [file.name for file in (own_folder / "sessions").iterdir()] == [session.name()]


def test_a_server_that_ended_is_reported_with_its_log(monkeypatch: pytest.MonkeyPatch, own_folder: Path) -> None:
    postgres_server.log().write_text("no room is left")
    monkeypatch.setattr(postgres_server, "_spawn", lambda: serving(999999999, "1"))
    monkeypatch.setattr(postgres_server, "cluster", lambda: Slow())
    with pytest.raises(RuntimeError, match="no room"):
        postgres_server.start()


def test_a_process_with_the_pid_of_an_ended_server_is_not_the_server(own_folder: Path) -> None:
    serving(os.getpid(), "1")
    assert postgres_server.running() is None


def test_checkouts_and_purposes_have_separate_servers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    name = postgres_server.folder.__wrapped__
    usual = name()
    monkeypatch.setenv("TEST_SERVER", "cluster")
    of_cluster = name()
    monkeypatch.setattr(postgres_server, "CHECKOUT", tmp_path)
    assert len({usual, of_cluster, name()}) == 3


@pytest.mark.parametrize(
    ("name", "sql", "another"),
    [("table.sql", "CREATE TABLE t ()", True), ("query.sql", "SELECT count(*) FROM t", False)],
)
def test_the_template_changes_with_sql_definitions_but_not_with_queries(
    name: str, sql: str, another: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(postgres_server, "CHECKOUT", tmp_path)
    (tmp_path / "billing" / "sql").mkdir(parents=True)
    of = postgres_server.template_name.__wrapped__
    before = of()
    (tmp_path / "billing" / "sql" / name).write_text(sql)
    assert (of() != before) is another


def test_databases_belong_to_running_sessions_by_their_name() -> None:
    live = {"77_ab12cd"}
    assert serve_postgres.belongs_to("gpubroker_test_77_ab12cd_gw0", live)
    assert not serve_postgres.belongs_to("gpubroker_test_7_ab12cd_gw0", live)
    assert not serve_postgres.belongs_to("gpubroker_test_77_ffffff_gw0", live)


@pytest.mark.timeout(120)
@pytest.mark.deep
def test_an_unused_server_stops_and_removes_its_folder(tmp_path: Path) -> None:
    """Take seconds: a server starts, notices that its only session is over, and stops."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("TEST_S", "PYTEST_"))}
    script = "from tests import postgres_server as s; s.start(); print(s.running().pid, s.folder())"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=session.CHECKOUT,
        env=env | {"TEST_SERVER": "short-lived", "TEST_SERVER_IDLE_S": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    pid, folder = done.stdout.split()
    end = time.monotonic() + 60
    while postgres_server.process_start(int(pid)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not postgres_server.process_start(int(pid))
    assert not Path(folder).exists()


@pytest.mark.django_db
def test_a_marked_test_finds_the_migrated_tables() -> None:
    assert ContentType.objects.count() >= 0


@pytest.mark.parametrize("run", [1, 2])
def test_the_queue_of_a_test_starts_empty(valkey_url: str, run: int) -> None:
    with Connection(valkey_url) as queue:
        hints = queue.SimpleQueue("hints")
        hints.put({"run": run})
        assert hints.qsize() == 1


def test_a_test_without_a_database_fixture_cannot_access_the_database() -> None:
    with pytest.raises(RuntimeError, match="Database access not allowed"):
        ContentType.objects.count()
