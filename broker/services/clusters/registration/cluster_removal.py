"""Cluster removal check: leases that still need a cluster, and unfinished work there."""

from collections.abc import Collection

from django.db.models import Q

from broker.domain.lifecycle.states import LeaseState, VolumeState
from broker.models import Allocation, Cluster, Lease, Volume
from broker.provisioners.base import parse_spec_name, spec_name
from tenants.services.rls import system_scope

S = LeaseState
NEEDS_CLUSTER_STATES = (
    S.PROVISIONING,
    S.ACTIVE,
    S.STOPPING,
)  # a releasing lease is no longer charged and only has to be removed


def leases_needing_cluster(spec_names: Collection[str]) -> list[str]:
    """Return the leases whose current generation is among these provision specs."""
    leases = {parse_spec_name(name)[0] for name in spec_names}
    with system_scope():
        rows = Lease.objects.filter(pk__in=leases, state__in=NEEDS_CLUSTER_STATES).order_by("id")
        existing = list(rows.values_list("id", "generation"))
    return [pk for pk, generation in existing if spec_name(pk, generation) in spec_names]


def unfinished_work(uid: str) -> list[str]:
    """Return leases and volumes that the cluster with this uid must still confirm gone.

    Once our account there is deleted nobody can ask the cluster any longer: placements would stay held, and
    volumes half deleted. A registered cluster with no known uid yet may be this one.
    """
    may_be = Cluster.objects.filter(uid__in=[uid, ""], provisioner="kubernetes")
    ids = list(may_be.values_list("id", flat=True))
    with system_scope():
        held = Allocation.objects.filter(gpu__node__cluster__in=ids, released_at=None)
        leases = set(held.values_list("lease", flat=True))
        left = Q(cluster__in=ids)
        for pk in ids:
            left |= Q(remaining_clusters__contains=pk)
        volumes = set(Volume.objects.filter(left, state=VolumeState.DELETING).values_list("id", flat=True))
    return sorted(leases) + sorted(volumes)
