"""Whether plans for a cluster's nodes begin without anybody's yes to each: its owner says so, cluster by cluster."""

from datetime import datetime

from django.db import transaction
from django.db.models import F

from broker.models import Cluster
from ports import doorbell
from tenants.services import audit
from tenants.services.actors import Actor


@transaction.atomic
def allow(cluster: Cluster, recuts: bool, *, why: str, actor: Actor, now: datetime) -> bool:
    """Let plans of a cluster begin by themselves or not; tell whether that is new.

    From then on shapes may be asked for there that no card is cut into yet. What was approved goes on either way.
    """
    changing = Cluster.objects.filter(pk=cluster.pk).exclude(recuts=recuts)
    if not changing.update(recuts=recuts, version=F("version") + 1):
        return False
    audit.record(
        "layouts.begin",
        actor=actor,
        now=now,
        subject_id=cluster.pk,
        subject_label=cluster.name,
        before=not recuts,
        after=recuts,
        reason=why,
    )
    if recuts:
        doorbell.ring("broker.plan_layouts", cluster.pk, now=now)
    return True
