"""Before a cluster is given up: which leases still count on it, and what our workers have yet to finish there."""

from collections.abc import Collection

from django.db.models import Q

from broker.domain.states import LeaseState, VolumeState
from broker.models import Allocation, Cluster, Lease, Volume
from broker.provisioners.base import order_name, order_parts
from tenants.services.walls import as_sweep

S = LeaseState
COUNT_ON_IT = (
    S.PROVISIONING,
    S.ACTIVE,
    S.STOPPING,
)  # what is releasing is charged no more, and only has to go


def counting_on(orders: Collection[str]) -> list[str]:
    """Name the leases that some orders, as a cluster names what it runs, are the present generation of."""
    leases = {order_parts(name)[0] for name in orders}
    with as_sweep():
        rows = Lease.objects.filter(pk__in=leases, state__in=COUNT_ON_IT).order_by("id")
        standing = list(rows.values_list("id", "generation"))
    return [pk for pk, generation in standing if order_name(pk, generation) in orders]


def unfinished(uid: str) -> list[str]:
    """Name what our books have in the cluster of this uid until it says itself that it is gone.

    Without our account there nobody could ask it any longer: places would stay taken, and volumes deleted by half. One
    that nobody has asked yet who it is may be this one.
    """
    may_be = Cluster.objects.filter(uid__in=[uid, ""], provisioner="kubernetes")
    ids = list(may_be.values_list("id", flat=True))
    with as_sweep():
        held = Allocation.objects.filter(gpu__node__cluster__in=ids, released_at=None)
        leases = set(held.values_list("lease", flat=True))
        left = Q(cluster__in=ids)
        for pk in ids:
            left |= Q(left_in__contains=pk)
        volumes = set(Volume.objects.filter(left, state=VolumeState.DELETING).values_list("id", flat=True))
    return sorted(leases) + sorted(volumes)
