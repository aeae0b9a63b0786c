"""Process many rows in one task within a time limit.

A row that fails does not block the others.
"""

from collections.abc import Callable, Iterator, Sequence

import structlog
from django.db import DatabaseError

from broker.models import StaleLease
from ports import clock
from tenants.services.errors import ProblemError

log = structlog.get_logger(__name__)
TimeIsOver = Callable[[], bool]
TIME_LIMIT_S = 30  # of a task's 45 s; the last row begun may use the rest
# Errors of one row: unforeseen data, or a concurrent change.
ROW_ERRORS = (
    DatabaseError,
    StaleLease,
    ProblemError,
    ArithmeticError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)


def process_fairly(
    found: Sequence[tuple[str, str]], process: Callable[[str, str, TimeIsOver], int], *, trouble: str
) -> Iterator[int]:
    """Process every (subject, tenant) and yield each result, until the time is over.

    The callback is given a function that tells whether the time is over. The caller orders the subjects
    so that those left over come first in the next run. The first is always processed, so that each run
    makes progress.
    """
    until = clock.monotonic() + TIME_LIMIT_S

    def over() -> bool:
        return clock.monotonic() >= until

    for n, (subject, tenant_id) in enumerate(found):
        if n and over():
            log.warning("batch incomplete", left=len(found) - n, of=len(found))
            return
        try:
            yield process(subject, tenant_id, over)
        except ROW_ERRORS as error:
            log.error(trouble, subject=subject, tenant_id=tenant_id, why=str(error).strip(), exc_info=error)
