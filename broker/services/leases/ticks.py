"""Marks in the ledger that close a metering segment of a lease that goes on."""

from datetime import datetime

from broker.domain.states import Condition, LeaseState
from broker.models import Lease, StaleLease

CAUSE = "metering tick"


def tick(lease: Lease, *, at: datetime) -> bool:
    """Close the open segment of an active lease at `at` and begin the next; False when there is nothing to do.

    What lies after its end, or after the last proof of life, is not certain to be charged: a lease that nobody
    has seen alive since is left to the reconciler, which may find that it was lost before.
    """
    certain = min(at, lease.ends_at or at)
    if lease.state != LeaseState.ACTIVE or lease.at >= certain or Condition.UNREACHABLE in lease.conditions:
        return False
    if lease.seen_at is None or lease.seen_at < certain:
        return False
    try:
        lease.move(LeaseState.ACTIVE, now=certain, cause=CAUSE)
    except StaleLease:
        return False
    return True
