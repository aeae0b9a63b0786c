"""What a worker does around every task: its connection is kept, and a broken one is replaced."""

from contextlib import suppress

from django.db import OperationalError, connection

from ports import doorbell
from tests.database import OwnDatabase


def test_a_task_keeps_its_connection_and_replaces_a_broken_one(own_database: OwnDatabase) -> None:
    seen: list[int] = []

    @doorbell.answering("tests.who")
    def who(subject: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            seen.append(cursor.fetchone()[0])

    who("x")
    who("x")
    assert seen[0] == seen[1]
    with suppress(OperationalError), connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
    who("x")
    assert seen[2] != seen[0]
