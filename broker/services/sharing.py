"""Whether two tenants may lie on one card of class soft or none: its cluster's owner says so, cluster by cluster."""

from datetime import datetime

from django.db import transaction
from django.db.models import F

from broker.models import Cluster, Gpu
from ports import doorbell
from tenants.services import audit
from tenants.services.actors import Actor


@transaction.atomic
def allow(cluster: Cluster, shares: bool, *, why: str, actor: Actor, now: datetime) -> bool:
    """Let tenants share such cards of a cluster or not; tell whether that is new.

    Who is side by side already stays so until they leave. Whoever waited for such a card is tried at once.
    """
    changing = Cluster.objects.filter(pk=cluster.pk).exclude(shares_soft_cards=shares)
    if not changing.update(shares_soft_cards=shares, version=F("version") + 1):
        return False
    audit.record(
        "cluster.share",
        actor=actor,
        now=now,
        subject_id=cluster.pk,
        subject_label=cluster.name,
        before=not shares,
        after=shares,
        reason=why,
    )
    if shares:
        cards = Gpu.objects.filter(node__cluster=cluster).order_by("gpu_model")
        for model in cards.values_list("gpu_model", flat=True).distinct():
            doorbell.ring("broker.serve", f"{model}|{cluster.region}", now=now)
    return True
