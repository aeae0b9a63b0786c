"""Leases that are charged and use nothing.

What a program does on its card nobody measures here yet. What is known is whether one is ready there: a lease that is
degraded holds its slice, is charged, and nothing of it runs. That is idle once it has lasted for a while, for a
program may be loading, or start again.
"""

from datetime import datetime, timedelta

from django.db.models import QuerySet

from broker.domain.states import Condition, LeaseState
from broker.models import Lease

LASTS = timedelta(minutes=15)
SEEN = timedelta(minutes=3)  # one that is ill is looked at each minute: for longer, its cluster is silent
UNSEEN = [str(Condition.UNREACHABLE), str(Condition.REPARTITIONING)]


def idle(rows: QuerySet[Lease], *, now: datetime) -> QuerySet[Lease]:
    """Return those of some leases of which nothing has run for a quarter of an hour, though their cluster answers."""
    ill = {"conditions__has_key": str(Condition.DEGRADED), "ill_since__lte": now - LASTS}
    seen = rows.filter(state=LeaseState.ACTIVE, seen_at__gte=now - SEEN, **ill)
    return seen.exclude(conditions__has_any_keys=UNSEEN)
