"""How long a batch may run: a Job ends by itself when its paid time does, so that more time must be told to it."""

from collections.abc import Iterator
from datetime import datetime
from math import ceil

from broker.domain.workloads import Shape, program
from broker.provisioners.kubernetes import names
from broker.provisioners.kubernetes.kinds import JOB, Ref
from broker.provisioners.kubernetes.render.lease import namespace_of
from broker.provisioners.kubernetes.spec import LeaseSpec, Manifest


def deadlines(lease: LeaseSpec, *, since: datetime | None) -> Iterator[tuple[Ref, Manifest]]:
    """Yield the change of each Job of a lease that runs until it is paid, counted from its anchor's beginning.

    A Job counts from its own start, a moment later: it never ends before the paid time does.
    """
    if since is None or program(lease.workload).template.shape is not Shape.BATCH:
        return
    seconds = max(ceil((lease.paid_until - since).total_seconds()), 1)
    for rank in range(len(lease.nodes)):
        name = names.on_node(lease.lease_id, lease.generation, rank, len(lease.nodes))
        yield Ref(JOB, name, namespace_of(lease)), {"spec": {"activeDeadlineSeconds": seconds}}
