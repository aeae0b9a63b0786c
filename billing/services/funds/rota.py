"""Looking after many in one task: each in its turn while the task lasts, and an odd one keeps nobody else's waiting."""

from collections.abc import Callable, Iterator, Sequence

import structlog
from django.db import DatabaseError

from broker.models import StaleLease
from ports import clock
from tenants.services.refusals import Refused

log = structlog.get_logger(__name__)
Over = Callable[[], bool]
LASTS_S = 30  # of the 45 that a task lives: the one that is begun last may take the rest
# What rows that nobody foresaw, or somebody who was faster, make of one of many.
ODD = (
    DatabaseError,
    StaleLease,
    Refused,
    ArithmeticError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)


def in_turn(
    found: Sequence[tuple[str, str]], look: Callable[[str, str, Over], int], *, trouble: str
) -> Iterator[int]:
    """Look at every subject of a tenant and yield what each look returns, until the time is over.

    A look is handed what tells whether the time is over. Who had no turn comes first in the next round: it is up to
    whoever orders them. The first has one in any case, so that each round comes further.
    """
    until = clock.monotonic() + LASTS_S

    def over() -> bool:
        return clock.monotonic() >= until

    for n, (subject, tenant_id) in enumerate(found):
        if n and over():
            log.warning("not all had their turn", left=len(found) - n, of=len(found))
            return
        try:
            yield look(subject, tenant_id, over)
        except ODD as odd:
            log.error(trouble, subject=subject, tenant_id=tenant_id, why=str(odd).strip(), exc_info=odd)
