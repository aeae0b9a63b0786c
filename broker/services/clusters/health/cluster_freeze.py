"""Freezing of clusters that were replaced, or restored to an older state.

What such a cluster lacks proves nothing about what runs, so nothing is written to it, deleted from it or
concluded from it. Its leases keep their state and are charged to their last observation, until an
operator accepts the cluster as it is.
"""

from datetime import datetime

import structlog
from django.db import transaction
from django.db.models import F

from broker.models import Cluster, ClusterObject, ClusterWatch
from broker.services.volumes import volume_lifecycle
from ports import outbox
from tenants.services import audit
from tenants.services.actors import Actor

log = structlog.get_logger(__name__)
MAX_REASON_LENGTH = 200


def freeze_cluster(cluster_id: str, why: str) -> None:
    """Stop all work on a cluster; the first reason is kept."""
    going = Cluster.objects.filter(pk=cluster_id, frozen="")
    if going.update(frozen=why[:MAX_REASON_LENGTH], version=F("version") + 1):
        log.error("cluster frozen", cluster=cluster_id, why=why)


def is_frozen(cluster_id: str) -> bool:
    return Cluster.objects.filter(pk=cluster_id).exclude(frozen="").exists()


@transaction.atomic
def unfreeze_cluster(cluster: Cluster, *, why: str, actor: Actor, now: datetime) -> None:
    """Accept a cluster as it is now and discard all stored observations of it.

    An old state may have brought back pods of leases that are over, which may write to volumes that others
    use now: they are looked for at once. Volumes that were deleted are deleted there again.
    """
    ClusterObject.objects.filter(cluster=cluster).delete()
    ClusterWatch.objects.filter(cluster=cluster).delete()
    Cluster.objects.filter(pk=cluster.pk).update(
        frozen="", uid="", unreachable_since=None, unreachable_reason="", version=F("version") + 1
    )
    outbox.enqueue("broker.sweep_all", "", now=now)
    volume_lifecycle.recheck_deleted(cluster, now=now)
    audit.record("cluster.unfreeze", cluster, actor=actor, now=now, was=cluster.frozen, reason=why)
