"""Fewer waits for PostgreSQL: statements planned once, and sent together where nobody waits for their rows."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Self, TypeVar, cast

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.utils import CursorWrapper

Act = TypeVar("Act", bound=Callable[..., Any])


class _Prepared(psycopg.Cursor[Any]):
    """Sends a statement's text and plans it once a connection; afterwards only the values travel."""

    def execute(self, query: Any, params: Any = None, **_: Any) -> Self:
        return super().execute(query, params, prepare=True)

    def _convert_query(self, query: Any, params: Any = None) -> Any:
        self._query = super()._convert_query(query, params)  # where Django's own log of statements looks
        return self._query


def prepared() -> CursorWrapper:
    """Return a cursor for a statement that stands in every request; values need a type where none can be inferred."""
    real = _connected()
    wrapped: CursorWrapper = real._prepare_cursor(_Prepared(real.connection))
    return wrapped


def rows(statement: str, values: Any) -> list[tuple[Any, ...]]:
    """Ask what stands in every request, and return all its rows."""
    with prepared() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())


def _connected() -> Any:
    """Look the thread's connection up once: each word through Django's proxy would be a look-up of its own."""
    real: Any = connections[DEFAULT_DB_ALIAS]
    if real.connection is None:
        real.ensure_connection()
    return real


@contextmanager
def batch() -> Iterator[None]:
    """Open psycopg's pipeline: a statement is waited for when its rows are read, the rest at the end.

    An error of a statement that nobody read comes out at the end of the block, or with the next rows that are
    read, and then nothing more can be done in the transaction but to undo it as a whole. How many rows an
    UPDATE met is not known inside: what must know it, such as `Lease.move`, has no place in a batch.
    """
    real = _connected()
    with real.wrap_database_errors, real.connection.pipeline():
        yield


def batched(act: Act) -> Act:
    """Run a whole function in a batch."""

    @wraps(act)
    def inside(*args: Any, **kwargs: Any) -> Any:
        with batch():
            return act(*args, **kwargs)

    return cast(Act, inside)
