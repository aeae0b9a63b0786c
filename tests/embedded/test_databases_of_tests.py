"""The databases that every other test trusts."""

import os
import threading
from pathlib import Path

import pytest
from django.contrib.contenttypes.models import ContentType
from django.db import connection, connections
from kombu import Connection

from tests import ground
from tests.database import OwnDatabase


def roles_of(alias: str) -> tuple[str, bool, bool]:
    with connections[alias].cursor() as cursor:
        cursor.execute(
            "SELECT current_user, rolsuper, rolbypassrls FROM pg_roles WHERE rolname = current_user"
        )
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
def test_what_a_test_commits_in_its_own_database_is_gone_for_the_next(
    own_database: OwnDatabase, run: int
) -> None:
    assert count_own_tables() == 0
    with connections["owner"].cursor() as cursor:
        cursor.execute("CREATE TABLE scratch (id int)")
    connections["owner"].close()
    assert count_own_tables() == 1


def test_threads_see_what_was_committed_in_an_own_database(own_database: OwnDatabase) -> None:
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
    """A server that answers at the third look."""

    looks = 0

    def answers(self) -> bool:
        self.looks += 1
        return self.looks > 2


def test_a_server_that_is_slow_to_answer_gets_no_second_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    slow, begun = Slow(), list[int]()

    def spawn() -> int:
        begun.append(os.getpid())
        return os.getpid()

    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setattr(ground, "folder", lambda: tmp_path)
    monkeypatch.setattr(ground, "cluster", lambda: slow)
    monkeypatch.setattr(ground, "_spawn_guardian", spawn)
    ground.need_server()
    assert (slow.looks, len(begun)) == (3, 1)
    slow.looks = 0  # the machine stands still, and another worker comes
    ground.need_server()
    assert (slow.looks, len(begun)) == (3, 1)


def test_a_server_that_ended_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "guardian").write_text("999999999")
    (tmp_path / "guardian.log").write_text("no room is left")
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setattr(ground, "folder", lambda: tmp_path)
    monkeypatch.setattr(ground, "cluster", lambda: Slow())
    with pytest.raises(RuntimeError, match="no room"):
        ground.need_server()


@pytest.mark.django_db
def test_a_marked_test_finds_the_migrated_tables() -> None:
    assert ContentType.objects.count() >= 0


@pytest.mark.parametrize("run", [1, 2])
def test_the_queue_of_a_test_starts_empty(valkey_url: str, run: int) -> None:
    with Connection(valkey_url) as queue:
        hints = queue.SimpleQueue("hints")
        hints.put({"run": run})
        assert hints.qsize() == 1


def test_a_test_that_asks_for_no_database_gets_none() -> None:
    with pytest.raises(RuntimeError, match="Database access not allowed"):
        ContentType.objects.count()
