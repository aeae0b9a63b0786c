"""Deadlines of batch Jobs: a Job ends by itself when its paid time does.

So its deadline must be extended when more time is paid.
"""

from collections.abc import Iterator
from datetime import datetime
from math import ceil

from broker.domain.workloads.templates import WorkloadShape, build_program
from broker.provisioners.kubernetes import names
from broker.provisioners.kubernetes.client.kinds import JOB, ObjectRef
from broker.provisioners.kubernetes.render.lease import namespace_of
from broker.provisioners.kubernetes.render.spec import LeaseSpec, Manifest


def job_deadlines(lease: LeaseSpec, *, since: datetime | None) -> Iterator[tuple[ObjectRef, Manifest]]:
    """Yield the deadline patch of each Job of a lease, counted from the anchor's creation.

    A Job counts from its own start, a moment later: it never ends before the paid time does.
    """
    if since is None or build_program(lease.workload).template.shape is not WorkloadShape.BATCH:
        return
    seconds = max(ceil((lease.paid_until - since).total_seconds()), 1)
    for rank in range(len(lease.nodes)):
        name = names.controller_name(lease.lease_id, lease.generation, rank, len(lease.nodes))
        yield ObjectRef(JOB, name, namespace_of(lease)), {"spec": {"activeDeadlineSeconds": seconds}}
