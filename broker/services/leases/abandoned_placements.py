"""Abandoned placements: held until the cluster proves that nothing of the lease is left.

A lease leaves a placement that did not take it, or whose cluster became unreachable before it began. Its
objects there are deleted, as often as it takes; only then may another lease use the placement.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from django.db.models import Q

from broker.models import Allocation, Lease, Transition
from broker.provisioners.base import ClusterUnreachable, Observation, ObservedState
from broker.services.inventory import cluster_provisioners
from broker.services.leases.provision_specs import load_provision_spec
from broker.services.placement.slot_search import PlacementRequest, pool_of
from broker.services.volumes import volume_mounts
from ports import clock, outbox
from tenants.services.rls import tenant_scope

AVOID_NODE_FOR = timedelta(minutes=2)  # how long a lease avoids a node that failed it
SOON_S = 2.0
BATCH = 500
# The cause of a transition, which the tenant reads too: no node failed, so none is avoided.
SLICE_TAKEN = "its cluster gave its slice to another lease"


def abandon_placements(lease: Lease, *, now: datetime) -> None:
    """Mark the lease's placements as abandoned. Runs in its tenant's transaction."""
    lease.allocations.filter(released_at=None, leaving_since=None).update(leaving_since=now)
    volume_mounts.detach_from_cluster(lease)
    outbox.enqueue("broker.free_abandoned_placements", lease.pk, tenant_id=lease.tenant_id, now=now, after_s=SOON_S)


def count_abandoned(lease: Lease) -> int:
    """Return how many placements the lease abandoned since it was last started."""
    left = lease.allocations.filter(leaving_since__gte=lease.queues_since)
    return left.values("generation").distinct().count()


def free_abandoned_placements(
    lease_id: str, tenant_id: str, *, now: datetime, beside: str = "", requests_until: datetime | None = None
) -> dict[str, Observation]:
    """Delete a lease's objects at abandoned placements and free those proven empty.

    Returns what each cluster answered, by its id, in which some of the lease may still run. A lost node does
    not count: nobody could wait for its proof. With `beside`, the cluster in which the lease is about to
    begin, other clusters that are known to be unreachable are not asked; after `requests_until` none is asked, and
    what was not asked may still run.
    """
    going: dict[str, Observation] = {}
    with tenant_scope(tenant_id):
        lease = Lease.objects.select_related("offering").get(pk=lease_id)
        left = lease.allocations.filter(released_at=None).exclude(leaving_since=None)
        if beside:
            left = left.filter(Q(gpu__node__cluster__unreachable_since=None) | Q(gpu__node__cluster=beside))
        generations = sorted(set(left.values_list("generation", flat=True)))
        specs = [load_provision_spec(lease, generation=each) for each in generations]
    for spec in specs:
        if (before := going.get(spec.cluster)) and not before.answered:
            continue  # it did not answer a moment ago
        if requests_until and clock.now() > requests_until:
            going.setdefault(spec.cluster, Observation(ObservedState.PENDING, again_in_s=SOON_S))
            continue
        try:
            observation = cluster_provisioners.provisioner_of(spec).remove(spec, now=now)
        except ClusterUnreachable as error:  # the sweep tries again
            again_in_s = error.again_in_s or Observation.again_in_s
            going[spec.cluster] = Observation(ObservedState.PENDING, again_in_s=again_in_s, answered=False)
            continue
        if observation.seen is ObservedState.GONE:
            _free_placements(lease, spec.generation, now=now)
        elif observation.seen is not ObservedState.LOST:
            going[spec.cluster] = observation
    return going


def _free_placements(lease: Lease, generation: int, *, now: datetime) -> None:
    with tenant_scope(lease.tenant_id):
        left = lease.allocations.filter(generation=generation, released_at=None).exclude(leaving_since=None)
        if left.update(released_at=now):
            outbox.enqueue("broker.run_queue", "|".join(pool_of(lease.offering)), now=now)


def due_abandoned() -> list[outbox.TaskMessage]:
    """Return a message for every lease with abandoned placements. Must run as sweep."""
    left = Allocation.objects.filter(released_at=None).exclude(leaving_since=None)
    rows = left.values_list("lease_id", "tenant_id").distinct().order_by("lease_id")[:BATCH]
    return [("broker.free_abandoned_placements", lease_id, tenant_id) for lease_id, tenant_id in rows]


def requests_to_try(lease: Lease, request: PlacementRequest, *, now: datetime) -> list[PlacementRequest]:
    """Return the placement requests to try in order.

    First clusters that have not failed the lease; never nodes that did so just now, unless the lease only lost its
    slice to another.
    """
    if lease.generation == 1 or not (names := abandoned_clusters(lease)):
        return [request]
    failed = Allocation.objects.filter(lease=lease, leaving_since__gt=now - AVOID_NODE_FOR)
    nodes = frozenset(failed.values_list("gpu__node_id", flat=True))
    elsewhere = [replace(request, not_on=nodes, not_in=names), replace(request, not_on=nodes)]
    return [*elsewhere, request] if _lost_its_slice(lease) else elsewhere


def _lost_its_slice(lease: Lease) -> bool:
    return Transition.objects.filter(lease_id=lease.pk, seq=lease.seq, cause=SLICE_TAKEN).exists()


def abandoned_clusters(lease: Lease) -> frozenset[str]:
    """Return the clusters the lease abandoned since it was last started."""
    left = Allocation.objects.filter(lease=lease, leaving_since__gte=lease.queues_since)
    return frozenset(left.values_list("gpu__node__cluster__name", flat=True))
