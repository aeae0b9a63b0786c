"""What the owner of a cluster allows on it, cluster by cluster and with a reason; what was begun before goes on."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import F

from broker.models import Cluster, Gpu
from ports import doorbell
from tenants.services import audit
from tenants.services.actors import Actor


@dataclass(frozen=True)
class Switch:
    """What may be on or off for a cluster: its field, its name in the audit trail, whom turning it on wakes."""

    field: str
    act: str
    wake: Callable[[Cluster, datetime], None]


def _plan(cluster: Cluster, now: datetime) -> None:
    doorbell.ring("broker.plan_layouts", cluster.pk, now=now)


def _serve(cluster: Cluster, now: datetime) -> None:
    cards = Gpu.objects.filter(node__cluster=cluster).order_by("gpu_model")
    for model in cards.values_list("gpu_model", flat=True).distinct():
        doorbell.ring("broker.serve", f"{model}|{cluster.region}", now=now)


# Plans for its nodes begin without a yes to each: shapes may be asked for there that no card is cut into yet.
RECUTS = Switch("recuts", "layouts.begin", _plan)
# Two tenants may lie on one card of class soft or none. Whoever waited for such a card is tried at once.
SHARES = Switch("shares_soft_cards", "cluster.share", _serve)


@transaction.atomic
def turn(switch: Switch, cluster: Cluster, on: bool, *, why: str, actor: Actor, now: datetime) -> bool:
    """Turn a cluster's switch on or off; tell whether that is new."""
    changing = Cluster.objects.filter(pk=cluster.pk).exclude(**{switch.field: on})
    if not changing.update(**{switch.field: on, "version": F("version") + 1}):
        return False
    audit.record(
        switch.act,
        actor=actor,
        now=now,
        subject_id=cluster.pk,
        subject_label=cluster.name,
        before=not on,
        after=on,
        reason=why,
    )
    if on:
        switch.wake(cluster, now)
    return True
