"""Items that need an operator's attention, worst first. Must run as staff."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from django.db.models import Q

from broker.domain.geometry.cpu_blocks import CPU_MODEL_NAME
from broker.domain.lifecycle.states import LeaseState
from broker.domain.repartition.repartition_steps import RepartitionStep
from broker.models import GpuHealth, Lease, NodeState
from broker.services.reports.gpu_usage import FleetGpu
from broker.services.reports.queue_report import QueueFigures

STUCK_AFTER = timedelta(minutes=2)  # pods start and stop within seconds; two minutes is not latency any more
MAX_STUCK_LEASES = 8


class AttentionKind(StrEnum):
    NODE = "node"
    NODES = "nodes"
    GPU = "gpu"
    LEASE = "lease"
    QUEUE = "queue"
    OFFERINGS = "offerings"
    CLUSTER = "cluster"
    FROZEN = "frozen"
    ORPHANS = "orphans"
    PLAN = "plan"
    DISPUTES = "disputes"
    CORRECTIONS = "corrections"


@dataclass(frozen=True, slots=True)
class AttentionItem:
    """An item that needs attention: what, why, since when, and its subject."""

    kind: AttentionKind
    what: str
    why: str
    subject: str = ""
    since: datetime | None = None
    urgent: bool = False


def find_attention_items(gpus: Sequence[FleetGpu], queue: QueueFigures, *, now: datetime) -> list[AttentionItem]:
    """Return everything that needs an operator; one query."""
    return [
        *_node_items(gpus),
        *_gpu_items(gpus),
        *find_stuck_leases(now=now),
        *_queue_items(queue, now),
        *_unsold_pools(gpus),
    ]


def _node_items(gpus: Sequence[FleetGpu]) -> Iterable[AttentionItem]:
    nodes: dict[str, list[FleetGpu]] = {}
    for gpu in gpus:
        nodes.setdefault(gpu.node, []).append(gpu)
    for node, its in nodes.items():
        name = f"{its[0].cluster_name} / {its[0].node_name}"
        held = len({s.lease for gpu in its for s in gpu.slices})
        if its[0].node_state is NodeState.LOST:
            why = f"{len(its)} {'GPU' if its[0].is_gpu else 'CPU block'}s, {_count_leases(held)} still on them"
            yield AttentionItem(AttentionKind.NODE, f"{name} is lost", why, node, its[0].node_since, urgent=True)
        elif its[0].cutting == RepartitionStep.QUARANTINED:
            why = "repartitioning its GPUs failed; it stays closed until you decide"
            yield AttentionItem(AttentionKind.NODE, f"{name} is quarantined", why, node, urgent=True)
        elif its[0].node_state is NodeState.DRAINING and not held:
            yield AttentionItem(
                AttentionKind.NODE, f"{name} is drained", "no leases run there any more", node, its[0].node_since
            )


def _gpu_items(gpus: Iterable[FleetGpu]) -> Iterable[AttentionItem]:
    for gpu in gpus:
        if gpu.unreadable:
            why = f"{gpu.unreadable}; no new leases are placed on it; {_count_leases(len(gpu.slices))} still on it"
            yield AttentionItem(
                AttentionKind.GPU, f"Allocations of {gpu.location} are inconsistent", why, gpu.id, urgent=True
            )
        if gpu.health is GpuHealth.UNHEALTHY:
            why = gpu.health_reason or "no reason given"
            if gpu.slices:
                why += f"; {_count_leases(len(gpu.slices))} still on it"
            yield AttentionItem(
                AttentionKind.GPU, f"{gpu.location} is unhealthy", why, gpu.id, gpu.health_since, urgent=True
            )


def find_stuck_leases(*, now: datetime) -> Iterable[AttentionItem]:
    """Yield leases that failed or are stuck in a transitional state."""
    moving = [S.value for S in (LeaseState.PROVISIONING, LeaseState.STOPPING, LeaseState.RELEASING)]
    rows = Lease.objects.select_related("tenant").filter(
        Q(state=LeaseState.FAILED) | Q(state__in=moving, state_since__lt=now - STUCK_AFTER)
    )
    for lease in rows.order_by("state_since", "id")[:MAX_STUCK_LEASES]:
        why = str(lease.progress.get("text", "")) or f"{lease.unfinished_claims} attempts so far"
        failed = lease.state == LeaseState.FAILED
        what = f"{lease.name} of {lease.tenant.name} {'failed' if failed else f'is stuck {lease.state}'}"
        yield AttentionItem(AttentionKind.LEASE, what, why, lease.pk, lease.state_since, urgent=failed)


def _queue_items(queue: QueueFigures, now: datetime) -> Iterable[AttentionItem]:
    if queue.overdue and queue.oldest:
        why = "GPUs are reserved for it that newer leases could use"
        yield AttentionItem(
            AttentionKind.QUEUE, "A lease has waited for more than an hour", why, since=now - queue.oldest
        )


def _unsold_pools(gpus: Iterable[FleetGpu]) -> Iterable[AttentionItem]:
    pools = {(gpu.model, gpu.region): 0 for gpu in gpus if not gpu.sellable.offered}
    for gpu in gpus:
        if not gpu.sellable.offered:
            pools[gpu.model, gpu.region] += 1
    for (model, region), count in sorted(pools.items()):
        yield AttentionItem(
            AttentionKind.OFFERINGS,
            f"{model} has no published offering in {region}",
            f"{count} {'CPU block' if model == CPU_MODEL_NAME else 'GPU'}s earn no revenue",
        )


def _count_leases(count: int) -> str:
    return {0: "no lease", 1: "one lease"}.get(count, f"{count} leases")
