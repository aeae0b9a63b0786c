"""Fewer waits for PostgreSQL: statements planned once, and sent together where nobody waits for their rows."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar, cast

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.postgresql.base import ServerBindingCursor
from django.db.backends.utils import CursorWrapper

Act = TypeVar("Act", bound=Callable[..., Any])


class _Prepared(ServerBindingCursor):  # type: ignore[misc]
    """Sends a statement's text and plans it once a connection; afterwards only the values travel."""

    def execute(self, query: Any, params: Any = None, **_: Any) -> Any:
        return super().execute(query, params, prepare=True)


def prepared() -> CursorWrapper:
    """Return a cursor for a statement that stands in every request; values need a type where none can be inferred."""
    real = _connected()
    wrapped: CursorWrapper = real._prepare_cursor(_Prepared(real.connection))
    return wrapped


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
