"""Idle leases: charged, but nothing runs on them.

GPU usage is not measured here yet. What is known is whether a program is ready: a degraded lease holds
its slice and is charged, though nothing of it runs. It counts as idle only after some time, because a
program may be loading or restarting.
"""

from datetime import datetime, timedelta

from django.db.models import QuerySet

from broker.domain.lifecycle.states import LeaseCondition, LeaseState
from broker.models import Lease

IDLE_AFTER = timedelta(minutes=15)
SEEN_WITHIN = timedelta(minutes=3)  # degraded leases are checked each minute; older means their cluster is unreachable
UNKNOWN_CONDITIONS = [str(LeaseCondition.UNREACHABLE), str(LeaseCondition.REPARTITIONING)]


def idle_leases(rows: QuerySet[Lease], *, now: datetime) -> QuerySet[Lease]:
    """Return leases on which nothing has run for 15 minutes though their cluster answers."""
    ill = {"conditions__has_key": str(LeaseCondition.DEGRADED), "degraded_since__lte": now - IDLE_AFTER}
    observed = rows.filter(state=LeaseState.ACTIVE, seen_at__gte=now - SEEN_WITHIN, **ill)
    return observed.exclude(conditions__has_any_keys=UNKNOWN_CONDITIONS)
