"""Inventory operations of operators: simulated racks, node states and GPU health."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F

from broker.domain.geometry.cpu_blocks import CPU_MODEL_NAME, blocks_of_node, profiles_in_block
from broker.domain.geometry.host_resources import DEFAULT_OF_A_GPU, HostResources
from broker.models import Cluster, Gpu, GpuHealth, InventoryChange, Node, NodeState
from broker.services.inventory.gpu_catalogue import gpu_model_spec
from ports import outbox
from tenants.services import audit
from tenants.services.actors import Actor

REFUSED_FOR = timedelta(minutes=5)
MAX_REASON_LENGTH = 300
SIMULATED_CPU_NODE = HostResources(cpu_milli=32_000, memory_mib=131_072, scratch_mib=204_800)


@dataclass(frozen=True)
class SimulatedRack:
    """Identical nodes to add to a simulated cluster."""

    cluster: str
    region: str
    model: str
    nodes: int
    gpus_per_node: int = 8
    first: int = 1
    fabric: int = 0  # size of groups linked by NVLink; 0: unknown
    numa: int = 0  # size of groups on one CPU socket; 0: unknown
    cpu_node: HostResources = SIMULATED_CPU_NODE  # what a node of the model CPU has; it decides how many blocks it has

    @property
    def has_gpus(self) -> bool:
        return self.model != CPU_MODEL_NAME

    @property
    def node_resources(self) -> HostResources:
        """Return what each node has for leases."""
        return DEFAULT_OF_A_GPU.times(self.gpus_per_node) if self.has_gpus else self.cpu_node

    def published(self) -> list[dict[str, list[int]] | None]:
        """Return the profiles of each device of a node; None: all of its model."""
        if self.has_gpus:
            return [None] * self.gpus_per_node
        fitting = [profiles_in_block(units) for units in blocks_of_node(self.cpu_node)]
        return [each.starts() if each else None for each in fitting]


@transaction.atomic
def add_simulated_racks(racks: Iterable[SimulatedRack], *, now: datetime) -> int:
    """Add missing simulated clusters, nodes and devices; return how many devices are new."""
    before = Gpu.objects.count()
    for rack in racks:
        gpu_model_spec(rack.model)
        cluster, _ = Cluster.objects.get_or_create(
            name=rack.cluster,
            defaults={"region": rack.region, "allow_shared_gpus": settings.ALLOW_SHARED_GPUS, "created_at": now},
        )
        for number in range(rack.first, rack.first + rack.nodes):
            node, _ = Node.objects.get_or_create(
                cluster=cluster, name=f"n{number:02d}", defaults={"state_since": now, **asdict(rack.node_resources)}
            )
            Gpu.objects.bulk_create(
                [
                    Gpu(
                        node=node,
                        index=index,
                        gpu_model_id=rack.model,
                        uuid=f"{'GPU' if rack.has_gpus else 'CPU'}-sim-{rack.cluster}-{node.name}-{index}",
                        published=published,
                        fabric=_link_group(index, rack.fabric),
                        numa=_link_group(index, rack.numa),
                        health_since=now,
                    )
                    for index, published in enumerate(rack.published())
                ],
                ignore_conflicts=True,
            )
    return Gpu.objects.count() - before


def _link_group(index: int, size: int) -> str:
    return str(index // size) if size else ""


@transaction.atomic
def set_node_state(node: Node, state: NodeState, *, reason: str, actor: Actor, now: datetime) -> None:
    """Set a node's state and record why; the reconciler handles its leases."""
    before = node.state
    if before == state:
        return
    Node.objects.filter(pk=node.pk).update(state=state, state_since=now, version=F("version") + 1)
    node.refresh_from_db()
    InventoryChange.objects.create(
        at=now, node=node, before=before, after=state, reason=reason, actor_label=actor.label
    )
    audit.record(f"node.{state}", node, actor=actor, now=now, before=before, reason=reason)
    enqueue_affected(node, now)


@transaction.atomic
def set_gpu_health(gpu: Gpu, health: GpuHealth, *, reason: str, actor: Actor, now: datetime) -> None:
    """Set a GPU's health and record why."""
    before = gpu.health
    if before == health:
        return
    Gpu.objects.filter(pk=gpu.pk).update(
        health=health, health_reason=reason, health_since=now, lost_since=None, version=F("version") + 1
    )
    gpu.refresh_from_db()
    InventoryChange.objects.create(
        at=now, node=gpu.node, gpu=gpu, before=before, after=health, reason=reason, actor_label=actor.label
    )
    audit.record(f"gpu.{health}", gpu, f"{gpu.node} {gpu}", actor=actor, now=now, before=before, reason=reason)
    enqueue_affected(gpu.node, now)


def set_gpu_lost(gpu: Gpu, lost: bool, *, now: datetime, since: datetime | None = None) -> None:
    """Record whether nothing can run on a GPU any more; the reconciler handles its leases.

    Without `since` it is lost since now.
    """
    if (gpu.lost_since is not None) == lost:
        return
    with transaction.atomic():  # not around the check, which every inventory makes for every GPU
        Gpu.objects.filter(pk=gpu.pk).update(lost_since=(since or now) if lost else None, version=F("version") + 1)
        gpu.refresh_from_db(fields=["lost_since", "version"])
        enqueue_affected(gpu.node, now)


@transaction.atomic
def close_refusing_node(node_id: str, *, reason: str, now: datetime) -> None:
    """Sell nothing on a node for a while, because it did not accept a pod.

    Its cluster may not know of it; after the time the next lease shows whether it accepts pods again.
    """
    Node.objects.filter(pk=node_id).update(
        refused_until=now + REFUSED_FOR,
        refused_reason=f"It did not accept a lease: {reason}"[:MAX_REASON_LENGTH],
        version=F("version") + 1,
    )


@transaction.atomic
def reopen_nodes(*, now: datetime) -> int:
    """Sell again on nodes whose time of refusal is over; return how many."""
    due = list(Node.objects.filter(refused_until__lte=now).select_related("cluster").order_by("pk"))
    for node in due:
        Node.objects.filter(pk=node.pk).update(refused_until=None, refused_reason="", version=F("version") + 1)
        enqueue_affected(node, now)
    return len(due)


def enqueue_affected(node: Node, now: datetime) -> None:
    """Enqueue work for what the change may affect: queues and live leases."""
    for model in Gpu.objects.filter(node=node).values_list("gpu_model", flat=True).distinct():
        outbox.enqueue("broker.run_queue", f"{model}|{node.cluster.region}", now=now)
    outbox.enqueue("broker.sweep_all", "", now=now)
