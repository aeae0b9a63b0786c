"""Clusters that are not what they were: another answers in their place, or an old state of them does.

What such a cluster lacks says nothing about what runs, so nothing is written to it, deleted from it or concluded from
it. Its leases keep their state and are charged to their last proof of life, until an operator says that it is to be
taken as it is.
"""

from datetime import datetime

import structlog
from django.db import transaction
from django.db.models import F

from broker.models import Cluster, ClusterObject, ClusterWatch
from broker.services.volumes import keeping
from ports import doorbell
from tenants.services import audit
from tenants.services.actors import Actor

log = structlog.get_logger(__name__)
LONGEST = 200


def freeze(cluster_id: str, why: str) -> None:
    """Stop all that is done to a cluster; the first reason stands."""
    going = Cluster.objects.filter(pk=cluster_id, frozen="")
    if going.update(frozen=why[:LONGEST], version=F("version") + 1):
        log.error("a cluster is frozen", cluster=cluster_id, why=why)


def is_frozen(cluster_id: str) -> bool:
    return Cluster.objects.filter(pk=cluster_id).exclude(frozen="").exists()


@transaction.atomic
def thaw(cluster: Cluster, *, why: str, actor: Actor, now: datetime) -> None:
    """Take a cluster as it is now; what we remember of it is forgotten, and whoever follows it looks anew.

    What an old state brought back of leases that are over may write to volumes that others have now: it is looked for
    at once. Of volumes nobody looks for what was deleted.
    """
    ClusterObject.objects.filter(cluster=cluster).delete()
    ClusterWatch.objects.filter(cluster=cluster).delete()
    Cluster.objects.filter(pk=cluster.pk).update(
        frozen="", uid="", silent_since=None, silent_why="", version=F("version") + 1
    )
    doorbell.ring("broker.sweep_all", "", now=now)
    keeping.delete_again(cluster, now=now)
    audit.record(
        "cluster.thaw",
        actor=actor,
        now=now,
        subject_id=cluster.pk,
        subject_label=cluster.name,
        was=cluster.frozen,
        reason=why,
    )
