"""What a lease's steps say in the logs: one line each, with the request or the task that took it."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import structlog
from django.db import transaction

log = structlog.get_logger(__name__)
_level = logging.getLogger(__name__)


def tell(lease_id: str, tenant_id: str, *, before: str, after: str, reason: str = "") -> None:
    """Say of a step that it was taken, once it is committed: what is undone was never so."""
    if _level.isEnabledFor(logging.INFO):
        ended = {"reason": reason} if reason else {}
        said = partial(log.info, lease_id=lease_id, tenant_id=tenant_id, before=before, after=after, **ended)
        transaction.on_commit(partial(said, "lease moved"), robust=True)


@contextmanager
def untold() -> Iterator[None]:
    """Say nothing until the block ends: a history that is made up is no news."""
    before = _level.level
    _level.setLevel(logging.WARNING)
    try:
        yield
    finally:
        _level.setLevel(before)
