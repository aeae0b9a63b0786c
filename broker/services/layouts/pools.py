"""What the planner is asked about: the nodes of one GpuModel in one cluster whose cut is fixed, and their demand."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db.models import Max
from django.db.models.functions import Coalesce

from broker.domain.layouts import CardNow, NodeNow, demand_of
from broker.domain.repartition import Step
from broker.domain.states import Isolation, LeaseState
from broker.models import Allocation, Gpu, Health, LayoutChange, Lease, Node, NodeState
from broker.services.catalogue import spec_of
from broker.services.layouts import cards
from tenants.services.walls import as_staff

LATELY = timedelta(minutes=30)
NEVER_S = 10**9  # of a place whose end nobody knows yet
WALLED = (Isolation.DEVICE.value, Isolation.HARDWARE.value)


@dataclass
class Pool:
    model: str
    region: str
    nodes: dict[str, Node] = field(default_factory=dict)
    views: list[NodeNow] = field(default_factory=list)
    demand: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _Past:
    """What happened to a cluster's nodes and cards that the planner must respect."""

    ends: dict[str, int]  # card to the seconds until its last lease ends
    changed: dict[str, datetime]  # node to when it was last cut
    busy: frozenset[str]  # nodes that are being cut


def pools_of(cluster_id: str, *, now: datetime) -> list[Pool]:
    """Load the pools of a cluster; six queries."""
    rows = Gpu.objects.filter(node__cluster_id=cluster_id).select_related("node__cluster")
    by_node: defaultdict[str, list[Gpu]] = defaultdict(list)
    for card in rows.order_by("node__name", "index"):
        by_node[card.node_id].append(card)
    past, pools = _past(cluster_id, now), dict[str, Pool]()
    for node_id, its in by_node.items():
        model, node = its[0].gpu_model_id, its[0].node
        if _plannable(its):
            pool = pools.setdefault(model, Pool(model, node.cluster.region))
            pool.nodes[node_id] = node
            pool.views.append(_view(its, past, now))
    for pool in pools.values():
        pool.demand = _demand(pool, now)
    return list(pools.values())


def _plannable(its: Sequence[Gpu]) -> bool:
    """Tell whether a node's cards are of one kind, and all of them cut in advance into what we can cut."""
    alike = len({card.gpu_model_id for card in its}) == 1
    return (
        alike
        and spec_of(its[0].gpu_model_id).cuttable
        and all(cards.cut_now(card) is not None for card in its)
    )


def _past(cluster_id: str, now: datetime) -> _Past:
    ends: dict[str, int] = {}
    with as_staff():
        held = Allocation.objects.filter(gpu__node__cluster_id=cluster_id, released_at=None)
        for gpu, end, leaving in held.values_list("gpu_id", "lease__ends_at", "leaving_since"):
            seconds = int((end - now).total_seconds()) if end and leaving is None else NEVER_S
            ends[gpu] = max(ends.get(gpu, 0), seconds)
    changes = LayoutChange.objects.filter(node__cluster_id=cluster_id)
    done = changes.filter(step=Step.DONE).values_list("node_id").annotate(Max("step_at"))
    return _Past(ends, dict(done), frozenset(changes.under_way().values_list("node_id", flat=True)))


def _view(its: Sequence[Gpu], past: _Past, now: datetime) -> NodeNow:
    node, changed = its[0].node, past.changed.get(its[0].node_id)
    waits = max((past.ends[card.pk] for card in its if card.pk in past.ends), default=0)
    in_service = all(card.health == Health.HEALTHY and card.closed_since is None for card in its)
    return NodeNow(
        name=node.pk,
        cards=tuple(
            CardNow(card.index, cards.cut_now(card) or cards.NOTHING, held=card.pk in past.ends)
            for card in its
            if card.health == Health.HEALTHY
        ),
        waits_s=None if waits == NEVER_S else max(waits, 0),
        changed_s_ago=int((now - changed).total_seconds()) if changed else None,
        open=in_service and node.state == NodeState.READY and node.pk not in past.busy,
    )


def _demand(pool: Pool, now: datetime) -> dict[str, int]:
    """Weigh what runs on the pool, what ended there lately, and what waits for its model in its region."""
    with as_staff():
        here = Allocation.objects.filter(gpu__node__in=pool.nodes, isolation__in=WALLED, leaving_since=None)
        live = Counter(here.filter(released_at=None).values_list("profile", flat=True))
        lately = Counter(here.filter(released_at__gt=now - LATELY).values_list("profile", flat=True))
        queue = Lease.objects.filter(
            state=LeaseState.QUEUED,
            offering__gpu_model=pool.model,
            offering__region=pool.region,
            offering__isolation__in=WALLED,
        ).values_list("offering__profile", "quantity", Coalesce("waits_since", "created_at"))
        waiting = [
            (profile, (now - since).total_seconds()) for profile, count, since in queue for _ in range(count)
        ]
    return demand_of(live, waiting, lately)
