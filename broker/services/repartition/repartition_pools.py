"""Input of the repartition planner: nodes of one model with a fixed layout, and demand."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db.models import Max
from django.db.models.functions import Coalesce

from broker.domain.lifecycle.states import Isolation, LeaseState
from broker.domain.repartition.layout_plans import CurrentGpu, CurrentNode, weigh_demand
from broker.domain.repartition.repartition_steps import RepartitionStep
from broker.models import Allocation, Gpu, GpuHealth, Lease, Node, NodeState, Repartition
from broker.services.inventory.gpu_catalogue import gpu_model_spec
from broker.services.repartition import layout_rows
from tenants.services.rls import staff_scope

RECENT = timedelta(minutes=30)
UNKNOWN_END_S = 10**9  # for a placement with an unknown end
DEDICATED = (Isolation.DEVICE.value, Isolation.HARDWARE.value)


@dataclass
class RepartitionPool:
    model: str
    region: str
    nodes: dict[str, Node] = field(default_factory=dict)
    views: list[CurrentNode] = field(default_factory=list)
    demand: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _NodeHistory:
    """Placements, repartitions and open work on a cluster that the planner must respect."""

    ends_s: dict[str, int]  # GPU to seconds until its last lease ends
    changed: dict[str, datetime]  # node to its last repartition
    repartitioning: frozenset[str]  # nodes with a repartition under way


def load_repartition_pools(cluster_id: str, *, now: datetime) -> list[RepartitionPool]:
    """Load the pools of a cluster; six queries."""
    rows = Gpu.objects.without_cpu_blocks().filter(node__cluster_id=cluster_id).select_related("node__cluster")
    by_node: defaultdict[str, list[Gpu]] = defaultdict(list)
    for gpu in rows.order_by("node__name", "index"):
        by_node[gpu.node_id].append(gpu)
    past, pools = _load_history(cluster_id, now), dict[str, RepartitionPool]()
    for node_id, its in by_node.items():
        model, node = its[0].gpu_model_id, its[0].node
        if _is_plannable(its):
            pool = pools.setdefault(model, RepartitionPool(model, node.cluster.region))
            pool.nodes[node_id] = node
            pool.views.append(_current_node(its, past, now))
    for pool in pools.values():
        pool.demand = _load_demand(pool, now)
    return list(pools.values())


def _is_plannable(its: Sequence[Gpu]) -> bool:
    """Return whether all GPUs of a node are of one model and can be repartitioned."""
    alike = len({gpu.gpu_model_id for gpu in its}) == 1
    return (
        alike
        and gpu_model_spec(its[0].gpu_model_id).has_mig_placements
        and all(layout_rows.current_layout(gpu) is not None for gpu in its)
    )


def _load_history(cluster_id: str, now: datetime) -> _NodeHistory:
    ends: dict[str, int] = {}
    with staff_scope():
        held = Allocation.objects.filter(gpu__node__cluster_id=cluster_id, released_at=None)
        for gpu, end, leaving in held.values_list("gpu_id", "lease__ends_at", "leaving_since"):
            seconds = int((end - now).total_seconds()) if end and leaving is None else UNKNOWN_END_S
            ends[gpu] = max(ends.get(gpu, 0), seconds)
    changes = Repartition.objects.filter(node__cluster_id=cluster_id)
    done = changes.filter(step=RepartitionStep.DONE).values_list("node_id").annotate(Max("step_at"))
    return _NodeHistory(ends, dict(done), frozenset(changes.under_way().values_list("node_id", flat=True)))


def _current_node(its: Sequence[Gpu], past: _NodeHistory, now: datetime) -> CurrentNode:
    node, changed = its[0].node, past.changed.get(its[0].node_id)
    waits = max((past.ends_s[gpu.pk] for gpu in its if gpu.pk in past.ends_s), default=0)
    in_service = all(gpu.health == GpuHealth.HEALTHY and gpu.out_of_service_since is None for gpu in its)
    return CurrentNode(
        name=node.pk,
        gpus=tuple(
            CurrentGpu(gpu.index, layout_rows.current_layout(gpu) or layout_rows.EMPTY_LAYOUT, gpu.pk in past.ends_s)
            for gpu in its
            if gpu.health == GpuHealth.HEALTHY
        ),
        until_idle_s=None if waits == UNKNOWN_END_S else max(waits, 0),
        since_change_s=int((now - changed).total_seconds()) if changed else None,
        changeable=in_service and node.state == NodeState.READY and node.pk not in past.repartitioning,
    )


def _load_demand(pool: RepartitionPool, now: datetime) -> dict[str, int]:
    """Return demand weights from running, recently ended and queued leases of the pool."""
    with staff_scope():
        here = Allocation.objects.filter(gpu__node__in=pool.nodes, isolation__in=DEDICATED, leaving_since=None)
        live = Counter(here.filter(released_at=None).values_list("profile", flat=True))
        lately = Counter(here.filter(released_at__gt=now - RECENT).values_list("profile", flat=True))
        queue = Lease.objects.filter(
            state=LeaseState.QUEUED,
            offering__gpu_model=pool.model,
            offering__region=pool.region,
            offering__isolation__in=DEDICATED,
        ).values_list("offering__profile", "quantity", Coalesce("requeued_at", "created_at"))
        waiting = [
            (profile, (now - since).total_seconds())
            for profile, count, since in queue
            for _ in range(count)
            if since <= now
        ]
    return weigh_demand(live, waiting, lately)
