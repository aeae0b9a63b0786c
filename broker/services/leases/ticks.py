"""Marks in the ledger that close a metering segment of a lease that goes on."""

from datetime import datetime

from broker.domain.states import LeaseState
from broker.models import Lease, StaleLease


def tick(lease: Lease, *, at: datetime) -> bool:
    """Close the open segment of an active lease at `at` and begin the next; False when there is nothing to do."""
    if lease.state != LeaseState.ACTIVE or lease.at >= at:
        return False
    try:
        lease.move(LeaseState.ACTIVE, now=at, cause="metering tick")
    except StaleLease:
        return False
    return True
