"""SQL statements: named in files, prepared, in batches, and with long lists as one value.

PostgreSQL accepts 65,535 parameters per statement, and a fleet has more objects: `name IN ($1, …, $70000)`
becomes `name = ANY($1)`, in our own queries and in those Django generates itself, as for prefetching. Short
lists stay as they are. A list with an expression in it, or with values of several types, cannot be an array.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import cache, wraps
from pathlib import Path
from typing import Any, Self, TypeVar, cast

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.utils import CursorWrapper
from django.db.models import Field, ForeignObject, Model
from django.db.models.fields.related_lookups import RelatedIn
from django.db.models.lookups import In
from psycopg.types.numeric import Int8

BatchedFunction = TypeVar("BatchedFunction", bound=Callable[..., Any])
RowT = TypeVar("RowT", bound=Model)
CHECKOUT = Path(__file__).resolve().parents[2]
MIN_ARRAY_LENGTH = 100
ARRAY_TYPES = (str, int, Int8, datetime)
ARRAY = "ANY(%s)"


@cache
def load_sql(name: str) -> str:
    """Return a statement by app, folder and file, such as `broker/queue/lock_queued`."""
    app, _, file = name.partition("/")
    return (CHECKOUT / app / "sql" / f"{file}.sql").read_text()


def query_rows(name: str, values: Any = None, /, **named: Any) -> list[tuple[Any, ...]]:
    """Run the statement of that name and return all its rows."""
    with _open_connection().cursor() as cursor:
        cursor.execute(load_sql(name), values or named or None)
        return list(cursor.fetchall())


class _PreparedCursor(psycopg.Cursor[Any]):
    """Cursor that prepares each statement once per connection, then sends only its values."""

    def execute(self, query: Any, params: Any = None, **_: Any) -> Self:
        return super().execute(query, params, prepare=True)

    def _convert_query(self, query: Any, params: Any = None) -> Any:
        self._query = super()._convert_query(query, params)  # read by Django's query log
        return self._query


def prepared_cursor() -> CursorWrapper:
    """Return a cursor for a statement that runs in every request.

    Its values need an explicit type where PostgreSQL cannot infer one.
    """
    real = _open_connection()
    wrapped: CursorWrapper = real._prepare_cursor(_PreparedCursor(real.connection))
    return wrapped


def fetch_rows(statement: str, values: Any) -> list[tuple[Any, ...]]:
    """Run a prepared statement and return all its rows."""
    with prepared_cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())


def send_row_query(model: type[RowT], condition: str, values: Any) -> Callable[[], RowT | None]:
    """Query a row of a model; the returned function waits for it.

    For queries of every request: through the ORM they take twice as long.
    """
    columns = [field.attname for field in model._meta.concrete_fields]
    cursor = prepared_cursor()
    cursor.execute(f"SELECT {', '.join(columns)} FROM {model._meta.db_table} WHERE {condition}", values)

    def read() -> RowT | None:
        with cursor:
            row = cursor.fetchone()
        return model.from_db(DEFAULT_DB_ALIAS, columns, row) if row else None

    return read


def _open_connection() -> Any:
    """Return the thread's connection, opened.

    It is looked up once: every attribute read through Django's proxy would be a look-up of its own.
    """
    real: Any = connections[DEFAULT_DB_ALIAS]
    if real.connection is None:
        real.ensure_connection()
    return real


@contextmanager
def batch() -> Iterator[None]:
    """Open psycopg's pipeline mode until the block ends.

    A statement is waited for when its rows are read; all others at the end of the block.

    An error of a statement whose rows nobody reads is raised at the end of the block, or when the next rows
    are read; the transaction can then only be rolled back as a whole. The number of rows an UPDATE matched is
    unknown inside a batch: code that needs it, such as `Lease.move`, must not run in one.
    """
    real = _open_connection()
    with real.wrap_database_errors, real.connection.pipeline():
        yield


def batched(act: BatchedFunction) -> BatchedFunction:
    """Run a whole function in a batch."""

    @wraps(act)
    def inside(*args: Any, **kwargs: Any) -> Any:
        with batch():
            return act(*args, **kwargs)

    return cast(BatchedFunction, inside)


class _ArrayIn(In):
    def process_rhs(self, compiler: Any, connection: Any) -> Any:
        sql, values = super().process_rhs(compiler, connection)
        if len(values) > MIN_ARRAY_LENGTH and _is_plain_list(sql, len(values)) and _have_one_type(values):
            return ARRAY, [list(values)]
        return sql, values

    def get_rhs_op(self, connection: Any, rhs: Any) -> str:
        return f"= {rhs}" if rhs == ARRAY else super().get_rhs_op(connection, rhs)


def _is_plain_list(sql: str, count: int) -> bool:
    return sql == f"({', '.join(['%s'] * count)})"


def _have_one_type(values: Any) -> bool:
    return any(all(type(value) is kind for value in values) for kind in ARRAY_TYPES)


@Field.register_lookup
class LongIn(_ArrayIn):
    """IN lookup of a column."""


@ForeignObject.register_lookup
class LongRelatedIn(_ArrayIn, RelatedIn):
    """IN lookup of a relation."""
