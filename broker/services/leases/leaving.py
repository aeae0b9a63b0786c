"""Places that a lease went on without: taken until their cluster proves that nothing of the lease is left there.

Its place may not have taken it, or its cluster fell silent before it began. Whatever of it is there is told to go, as
often as it takes; only then may anybody else have the place.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from django.db.models import Q

from broker.models import Allocation, Lease
from broker.provisioners.base import Observation, Seen, Unanswered
from broker.services import clusters
from broker.services.leases.orders import order_of
from broker.services.placement.seating import Wish, pool_of
from broker.services.volumes import mounting
from ports import clock, doorbell
from tenants.services.walls import as_tenant

ELSEWHERE = timedelta(minutes=2)  # how long a lease does not go back to a node that did not take it
SOON_S = 2.0
BATCH = 500
Hint = tuple[str, str, str]


def leave(lease: Lease, *, now: datetime) -> None:
    """Let a lease go on without the places it has. Inside its tenant's transaction."""
    lease.allocations.filter(released_at=None, leaving_since=None).update(leaving_since=now)
    mounting.leave(lease)
    doorbell.ring("broker.leave", lease.pk, tenant_id=lease.tenant_id, now=now, after_s=SOON_S)


def places_left(lease: Lease) -> int:
    """Count how many times a lease went on without its places since it was last asked to start."""
    left = lease.allocations.filter(leaving_since__gte=lease.queues_since)
    return left.values("generation").distinct().count()


def step(
    lease_id: str, tenant_id: str, *, now: datetime, beside: str = "", asks_by: datetime | None = None
) -> dict[str, Observation]:
    """Tell what is left of a lease's earlier places to go, and give back those that are proven empty.

    Return what each cluster said, by its id, in which some of it may still run. What is on a lost node does not count:
    nobody could wait for its proof. Whoever is about to begin in the cluster `beside` does not ask others that are
    known to be silent, and nobody once it is past `asks_by`: what was not asked then may still run.
    """
    going: dict[str, Observation] = {}
    with as_tenant(tenant_id):
        lease = Lease.objects.select_related("offering").get(pk=lease_id)
        left = lease.allocations.filter(released_at=None).exclude(leaving_since=None)
        if beside:
            left = left.filter(Q(gpu__node__cluster__silent_since=None) | Q(gpu__node__cluster=beside))
        generations = sorted(set(left.values_list("generation", flat=True)))
        orders = [order_of(lease, generation=each) for each in generations]
    for order in orders:
        if (before := going.get(order.cluster)) and not before.answered:
            continue  # it was asked a moment ago
        if asks_by and clock.now() > asks_by:
            going.setdefault(order.cluster, Observation(Seen.PENDING, again_in_s=SOON_S))
            continue
        try:
            seen = clusters.provisioner_of(order).remove(order, now=now)
        except Unanswered as silence:  # the sweep asks again
            again_in_s = silence.again_in_s or Observation.again_in_s
            going[order.cluster] = Observation(Seen.PENDING, again_in_s=again_in_s, answered=False)
            continue
        if seen.seen is Seen.GONE:
            _give_back(lease, order.generation, now=now)
        elif seen.seen is not Seen.LOST:
            going[order.cluster] = seen
    return going


def _give_back(lease: Lease, generation: int, *, now: datetime) -> None:
    with as_tenant(lease.tenant_id):
        left = lease.allocations.filter(generation=generation, released_at=None).exclude(leaving_since=None)
        if left.update(released_at=now):
            doorbell.ring("broker.serve", "|".join(pool_of(lease.offering)), now=now)


def due() -> list[Hint]:
    """Return a look at every lease that has places it went on without. Must run as sweep."""
    left = Allocation.objects.filter(released_at=None).exclude(leaving_since=None)
    rows = left.values_list("lease_id", "tenant_id").distinct().order_by("lease_id")[:BATCH]
    return [("broker.leave", lease_id, tenant_id) for lease_id, tenant_id in rows]


def elsewhere(lease: Lease, wish: Wish, *, now: datetime) -> list[Wish]:
    """Return what to try in turn: clusters that have not failed it first, and no node that did so just now."""
    if lease.generation == 1 or not (names := clusters_left(lease)):
        return [wish]
    failed = Allocation.objects.filter(lease=lease, leaving_since__gt=now - ELSEWHERE)
    nodes = frozenset(failed.values_list("gpu__node_id", flat=True))
    return [replace(wish, not_on=nodes, not_in=names), replace(wish, not_on=nodes)]


def clusters_left(lease: Lease) -> frozenset[str]:
    """Name the clusters that a lease went on without since it was last asked to start."""
    left = Allocation.objects.filter(lease=lease, leaving_since__gte=lease.queues_since)
    return frozenset(left.values_list("gpu__node__cluster__name", flat=True))
