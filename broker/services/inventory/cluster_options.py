"""Options a cluster's owner can turn on or off, with a reason.

What was begun before a change goes on.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import F

from broker.models import Cluster, Gpu
from ports import outbox
from tenants.services import audit
from tenants.services.actors import Actor


@dataclass(frozen=True)
class ClusterOption:
    """An option of a cluster: its column, audit action, and what enabling it triggers."""

    field: str
    act: str
    wake: Callable[[Cluster, datetime], None]


def _enqueue_planning(cluster: Cluster, now: datetime) -> None:
    outbox.enqueue("broker.plan_repartitions", cluster.pk, now=now)


def _enqueue_queue_runs(cluster: Cluster, now: datetime) -> None:
    gpus = Gpu.objects.filter(node__cluster=cluster).order_by("gpu_model")
    for model in gpus.values_list("gpu_model", flat=True).distinct():
        outbox.enqueue("broker.run_queue", f"{model}|{cluster.region}", now=now)


# Repartition plans for its nodes start without approval, so profiles no GPU has yet may be requested there.
AUTO_REPARTITION = ClusterOption("auto_repartition", "layouts.enable_automatic", _enqueue_planning)
# Two tenants may share a GPU of isolation soft or none. Leases that wait for such a GPU are tried at once.
SHARED_GPUS = ClusterOption("allow_shared_gpus", "cluster.allow_sharing", _enqueue_queue_runs)


@transaction.atomic
def set_cluster_option(
    switch: ClusterOption, cluster: Cluster, on: bool, *, why: str, actor: Actor, now: datetime
) -> bool:
    """Turn a cluster's option on or off; return whether it changed."""
    changing = Cluster.objects.filter(pk=cluster.pk).exclude(**{switch.field: on})
    if not changing.update(**{switch.field: on, "version": F("version") + 1}):
        return False
    audit.record(switch.act, cluster, actor=actor, now=now, before=not on, after=on, reason=why)
    if on:
        switch.wake(cluster, now)
    return True
