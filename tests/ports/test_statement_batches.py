"""Prepared statements, and batches of them."""

from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from ports.models import OutboxMessage
from ports.postgres import sql_statements
from tests.simulation import NOW

pytestmark = pytest.mark.django_db
ADD = "INSERT INTO ports_outboxmessage (id, task, subject, tenant_id, at) VALUES (%s, 'a', %s, '', %s)"


def prepared_statements() -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement FROM pg_prepared_statements")
        return {row[0] for row in cursor.fetchall()}


def test_a_prepared_cursor_prepares_its_statement() -> None:
    for number in range(3):
        with sql_statements.prepared_cursor() as cursor:
            cursor.execute("SELECT %s::int + 40", [number])
            assert cursor.fetchone() == (40 + number,)
    assert "SELECT $1::int + 40" in prepared_statements()


def test_prepared_statements_are_counted_and_logged(django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(1) as seen, sql_statements.prepared_cursor() as cursor:
        cursor.execute("SELECT %s::int + 41", [1])
    assert "+ 41" in seen.captured_queries[0]["sql"]


def test_results_of_a_batch_can_be_read_in_any_order() -> None:
    with (
        sql_statements.batch(),
        sql_statements.prepared_cursor() as first,
        sql_statements.prepared_cursor() as second,
    ):
        first.execute("SELECT 1")
        second.execute("SELECT 2")
        with sql_statements.prepared_cursor() as unread:
            unread.execute(ADD, [1, "x", NOW])
        assert second.fetchone() == (2,)
        assert first.fetchone() == (1,)
    assert OutboxMessage.objects.get().subject == "x"


def test_an_unread_batch_error_is_raised_as_a_django_error() -> None:
    @sql_statements.batched
    def twice() -> None:
        for _ in range(2):
            with sql_statements.prepared_cursor() as cursor:
                cursor.execute(ADD, [1, "x", NOW])

    with pytest.raises(IntegrityError), transaction.atomic():
        twice()
    assert not OutboxMessage.objects.exists()


def test_a_batch_opens_the_connection_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[bool] = []
    real = sql_statements.connections["default"]
    kept = real.connection

    def open_again() -> None:
        opened.append(True)
        real.connection = kept

    monkeypatch.setattr(real, "ensure_connection", open_again)
    real.connection = None
    with sql_statements.prepared_cursor() as cursor:
        cursor.execute("SELECT 1")
    assert opened == [True]
