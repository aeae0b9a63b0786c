"""Simulated crashes before any statement or commit."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from django.db import connection, connections

COMMIT = "COMMIT"


class Dead(BaseException):
    """Nothing of this process happens after this moment."""


def broken_off() -> None:
    """Break the connection, so that PostgreSQL rolls back."""
    connection.connection.close()
    for method in ("ensure_connection", "set_autocommit"):
        setattr(connection, method, _dead)
    raise Dead


def _dead(*_: Any, **__: Any) -> None:
    raise Dead


def killed() -> None:
    """Die by SIGKILL: no `finally` runs, no buffer is flushed."""
    os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def dies(before: int | None, *, by: Callable[[], None] = broken_off) -> Iterator[list[str]]:
    """Count statements and commits, and die before one of them.

    Yields what was said. Who survives has said it all, and whoever comes after has a connection of their own.
    """
    said: list[str] = []

    def counts(what: str) -> None:
        if len(said) == before:
            by()
        said.append(what)

    def counted_execute(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        counts(sql)
        return execute(sql, *rest)

    def commit() -> None:
        counts(COMMIT)
        commits()

    commits = connection.commit
    connection.commit = commit  # type: ignore[method-assign]
    try:
        with suppress(Dead), connection.execute_wrapper(counted_execute):
            yield said
    finally:
        if connection.connection is not None:
            connection.connection.close()
        del connections[connection.alias]
