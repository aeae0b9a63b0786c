"""What operators do to the fleet: racks go in, nodes are cordoned, cards fail and come back."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.db.models import F

from broker.models import Cluster, Gpu, Health, InventoryChange, Node, NodeState
from broker.services.catalogue import spec_of
from ports import doorbell
from tenants.services import audit
from tenants.services.actors import Actor


@dataclass(frozen=True)
class Rack:
    """Nodes of one kind in a simulated cluster."""

    cluster: str
    region: str
    model: str
    nodes: int
    cards_per_node: int = 8
    first: int = 1
    fabric: int = 0  # so many neighbours reach each other by NVLink; 0: nobody knows how cards are linked
    numa: int = 0  # so many neighbours are below one processor


@transaction.atomic
def add_simulated(racks: Iterable[Rack], *, now: datetime) -> int:
    """Add clusters, nodes and cards that are not there yet; return how many cards are new."""
    before = Gpu.objects.count()
    for rack in racks:
        spec_of(rack.model)
        cluster, _ = Cluster.objects.get_or_create(
            name=rack.cluster,
            defaults={
                "region": rack.region,
                "shares_soft_cards": settings.SHARE_SOFT_CARDS,
                "created_at": now,
            },
        )
        for number in range(rack.first, rack.first + rack.nodes):
            node, _ = Node.objects.get_or_create(
                cluster=cluster, name=f"n{number:02d}", defaults={"state_since": now}
            )
            Gpu.objects.bulk_create(
                [
                    Gpu(
                        node=node,
                        index=index,
                        gpu_model_id=rack.model,
                        uuid=f"GPU-sim-{rack.cluster}-{node.name}-{index}",
                        fabric=_group(index, rack.fabric),
                        numa=_group(index, rack.numa),
                        health_since=now,
                    )
                    for index in range(rack.cards_per_node)
                ],
                ignore_conflicts=True,
            )
    return Gpu.objects.count() - before


def _group(index: int, size: int) -> str:
    return str(index // size) if size else ""


@transaction.atomic
def set_node_state(node: Node, state: NodeState, *, reason: str, actor: Actor, now: datetime) -> None:
    """Cordon, drain, lose or bring back a node; what it means for leases is the reconciler's business."""
    before = node.state
    if before == state:
        return
    Node.objects.filter(pk=node.pk).update(state=state, state_since=now, version=F("version") + 1)
    node.refresh_from_db()
    InventoryChange.objects.create(
        at=now, node=node, before=before, after=state, reason=reason, actor_label=actor.label
    )
    audit.record(
        f"node.{state}",
        actor=actor,
        now=now,
        subject_id=node.pk,
        subject_label=str(node),
        before=before,
        reason=reason,
    )
    _wake(node, now)


@transaction.atomic
def set_health(gpu: Gpu, health: Health, *, reason: str, actor: Actor, now: datetime) -> None:
    """Take a card out of the pool or back into it."""
    before = gpu.health
    if before == health:
        return
    Gpu.objects.filter(pk=gpu.pk).update(
        health=health, health_reason=reason, health_since=now, version=F("version") + 1
    )
    gpu.refresh_from_db()
    InventoryChange.objects.create(
        at=now, node=gpu.node, gpu=gpu, before=before, after=health, reason=reason, actor_label=actor.label
    )
    audit.record(
        f"card.{health}",
        actor=actor,
        now=now,
        subject_id=gpu.pk,
        subject_label=f"{gpu.node} {gpu}",
        before=before,
        reason=reason,
    )
    _wake(gpu.node, now)


def _wake(node: Node, now: datetime) -> None:
    """Look at once at everything the change may touch: the queue of its pools, and all live leases."""
    for model in Gpu.objects.filter(node=node).values_list("gpu_model", flat=True).distinct():
        doorbell.ring("broker.serve", f"{model}|{node.cluster.region}", now=now)
    doorbell.ring("broker.sweep_all", "", now=now)
