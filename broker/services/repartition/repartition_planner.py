"""Repartition plans for a cluster's pools; nothing changes until one is approved."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

import structlog
from django.db import transaction

from broker.domain.repartition.gpu_layouts import LayoutCatalogue
from broker.domain.repartition.layout_plans import NodeLayoutPlan, plan_node_layouts
from broker.domain.repartition.mig_configs import common_limits
from broker.domain.repartition.repartition_steps import RepartitionStep
from broker.models import Cluster, LayoutPolicy, Node, Repartition, RepartitionLogEntry
from broker.models.repartitions import stored_layout
from broker.provisioners.base import ClusterUnreachable
from broker.services.inventory.gpu_catalogue import gpu_model_spec, plain_profiles
from broker.services.repartition import repartition_decisions, repartition_records
from broker.services.repartition.node_partitioners import machine_of, partitioner_of
from broker.services.repartition.repartition_pools import RepartitionPool, load_repartition_pools
from ports import outbox
from tenants.services import audit
from tenants.services.actors import SYSTEM, Actor
from tenants.services.errors import ProblemError

log = structlog.get_logger(__name__)


@transaction.atomic
def request_planning(cluster: Cluster, *, actor: Actor, now: datetime) -> None:
    """Queue repartition planning for a cluster.

    Planning asks the nodes what they support, which no page may wait for.
    """
    audit.record("layouts.plan", cluster, actor=actor, now=now)
    outbox.enqueue("broker.plan_repartitions", cluster.pk, now=now)


def plan_and_approve(cluster_id: str, *, now: datetime) -> None:
    """Plan a cluster's repartitions, and approve them where its owner allows that."""
    for change in propose_repartitions(cluster_id, now=now):
        if change.node.cluster.auto_repartition:
            with suppress(ProblemError):  # the node changed during planning; the next plan considers that
                repartition_decisions.approve_repartition(change, actor=SYSTEM, now=now)


def propose_repartitions(cluster_id: str, *, now: datetime) -> list[Repartition]:
    """Plan every pool of a cluster again and return the proposals.

    Plans that nobody approved are replaced. The nodes are asked which profiles they support, so no
    transaction may be open. They are asked only if some plan gains anything when every GPU supports all that
    its model can; otherwise no plan can gain, and idle clusters are not asked at all.
    """
    proposed = []
    for pool in load_repartition_pools(cluster_id, now=now):
        partitioner = partitioner_of(next(iter(pool.nodes.values())))
        if partitioner is None:
            continue
        plans = _plans_with_gain(pool, dict.fromkeys(pool.nodes))
        try:
            if plans:
                plans = _plans_with_gain(pool, partitioner.profiles([machine_of(node) for node in pool.nodes.values()]))
        except ClusterUnreachable as error:
            log.warning("no layout planned: cluster does not respond", model=pool.model, why=str(error))
            continue
        proposed += _store_plans(pool, {each.node: each for each in plans}, now)
    return proposed


def _plans_with_gain(
    pool: RepartitionPool, limits: Mapping[str, Mapping[str, int] | None]
) -> tuple[NodeLayoutPlan, ...]:
    """Return plans for nodes that told their profiles.

    Other nodes stay as they are, but what they offer counts.
    """
    views = [replace(view, changeable=view.changeable and view.name in limits) for view in pool.views]
    spec = gpu_model_spec(pool.model)
    return plan_node_layouts(
        views, pool.demand, LayoutCatalogue(spec, plain_profiles(spec), common_limits(limits.values()))
    )


@transaction.atomic
def _store_plans(pool: RepartitionPool, plans: dict[str, NodeLayoutPlan], now: datetime) -> list[Repartition]:
    """Store the plans; an unchanged plan keeps its row."""
    chosen = []
    for change in Repartition.objects.filter(node__in=pool.nodes, step=RepartitionStep.PLANNED).select_related(
        "node__cluster"
    ):
        same = plans.get(change.node_id)
        if same and change.layouts == dict(same.layouts):
            chosen.append(change)
            del plans[change.node_id]
        else:
            repartition_records.set_repartition_step(
                change, RepartitionStep.CANCELLED, why="replaced by another plan", now=now
            )
    return chosen + [_create_plan(pool, each, now) for each in plans.values()]


def _create_plan(pool: RepartitionPool, each: NodeLayoutPlan, now: datetime) -> Repartition:
    view = next(view for view in pool.views if view.name == each.node)
    change = Repartition.objects.create(
        node=pool.nodes[each.node],
        wanted=stored_layout(dict(each.layouts)),
        before=stored_layout({gpu.index: gpu.layout for gpu in view.gpus}),
        gain_milli=each.gain_milli,
        step_at=now,
        planned_at=now,
    )
    gpus = f"{len(each.changed_gpus)} GPU{'s' if len(each.changed_gpus) > 1 else ''} repartitioned"
    why = f"{gpus}, to serve {each.gain_milli / 1000:.2f} GPUs' worth more of what is asked for"
    RepartitionLogEntry.objects.create(change=change, seq=0, step=RepartitionStep.PLANNED.value, at=now, why=why)
    return change


def clusters_to_plan() -> list[outbox.TaskMessage]:
    """Return a planning message for every cluster with fixed-layout GPUs."""
    clusters = Node.objects.filter(gpus__layout_policy=LayoutPolicy.FIXED).values_list("cluster_id", flat=True)
    return [("broker.plan_repartitions", cluster, "") for cluster in clusters.distinct().order_by("cluster_id")]


def latest_repartitions(cluster: Cluster) -> dict[str, Repartition]:
    """Return each node's latest repartition that is planned, under way or failed."""
    changes = Repartition.objects.filter(node__cluster=cluster).order_by("planned_at", "id")
    return {each.node_id: each for each in changes if not each.is_over or each.step == RepartitionStep.QUARANTINED}
