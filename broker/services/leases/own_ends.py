"""When a lease's program ended by itself, as far as anybody has seen: whoever lets go of it later pays to then.

Its worker may not have looked yet. Read from our own rows, for nothing may be asked of a cluster in a transaction.
"""

from datetime import datetime, timedelta

import msgspec

from broker.models import Allocation, ClusterObject, Lease
from broker.provisioners.base import order_name
from broker.provisioners.kubernetes.kinds import POD
from broker.provisioners.kubernetes.objects import Pod
from broker.provisioners.kubernetes.observing import usage

SKEW = timedelta(seconds=10)  # between a node's clock and ours, and between two of an agent's watches


def seen(lease: Lease) -> datetime | None:
    """Return when the last pod of a lease ended; None while one runs, was never seen, or may be started again.

    An agent that is away leaves old rows behind: what a worker saw run afterwards did not end then. Not so where the
    agent wrote the end down after that: then the worker was shown what had ended already.
    """
    held = Allocation.objects.filter(lease=lease, generation=lease.generation)
    rows = ClusterObject.objects.filter(
        cluster=held.values("gpu__node__cluster")[:1],  # as the index is
        order_name=order_name(lease.pk, lease.generation),
        kind=POD.name,
    )
    told = list(rows.values_list("body", "seen_at"))
    pods = [msgspec.convert(body, Pod) for body, _ in told]
    ends = [used.until for pod in pods if (used := usage(pod)) and used.until]
    if not ends or len(ends) < max(len(pods), _ranks(lease)):
        return None
    end = max(ends)
    if lease.seen_at is None or max(at for _, at in told) > lease.seen_at:
        return end
    return None if end < lease.seen_at - SKEW else end


def _ranks(lease: Lease) -> int:
    """Count the pods that it has: one on each node."""
    if lease.quantity == 1:
        return 1
    held = Allocation.objects.filter(lease=lease, generation=lease.generation, released_at=None)
    return held.values("gpu__node").distinct().count()
