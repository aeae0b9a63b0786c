"""When a lease's program ended by itself, so that the tenant pays only until then.

A worker may not have seen the end yet. It is read from our stored observations, because a cluster must
not be asked inside a transaction.
"""

from datetime import datetime, timedelta

import msgspec

from broker.models import Allocation, Lease
from broker.provisioners.base import spec_name
from broker.provisioners.kubernetes.client.kinds import POD
from broker.provisioners.kubernetes.client.objects import ObservedPod
from broker.provisioners.kubernetes.observe.pod_observation import pod_usage
from ports.postgres.sql_statements import fetch_rows, load_sql

CLOCK_SKEW = timedelta(seconds=10)  # between a node's clock and ours, and between two watches of an agent


def observed_program_end(lease: Lease) -> datetime | None:
    """Return when the last pod of a lease ended; None if one may still run.

    None also when no pod was observed, or when it may be restarted. An agent that is away leaves old rows
    behind: if a worker saw the lease run afterwards, it did not end then. Unless the agent stored the end
    after that: then the worker was shown an outdated state.
    """
    wanted = {
        "lease": lease.pk,
        "generation": lease.generation,
        "spec_name": spec_name(lease.pk, lease.generation),
        "kind": POD.name,
    }
    rows = fetch_rows(load_sql("broker/leases/observed_pods"), wanted)
    pods = [msgspec.json.decode(body, type=ObservedPod) for body, _ in rows]
    ends = [used.until for pod in pods if (used := pod_usage(pod)) and used.until]
    if not ends or len(ends) < max(len(pods), _count_pods(lease)):
        return None
    end = max(ends)
    if lease.seen_at is None or max(at for _, at in rows) > lease.seen_at:
        return end
    return None if end < lease.seen_at - CLOCK_SKEW else end


def _count_pods(lease: Lease) -> int:
    """Return how many pods the lease has: one on each node."""
    if lease.quantity == 1:
        return 1
    held = Allocation.objects.filter(lease=lease, generation=lease.generation, released_at=None)
    return held.values("gpu__node").distinct().count()
