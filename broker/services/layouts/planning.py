"""Plans for the pools of a cluster. A plan is only a row until somebody approves it."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

import structlog
from django.db import transaction

from broker.domain.cuts import Catalogue
from broker.domain.layouts import NodePlan, plan
from broker.domain.mig_configs import common
from broker.domain.repartition import Step
from broker.models import Cluster, LayoutChange, LayoutPolicy, LayoutStep, Node
from broker.models.layouts import layout_of
from broker.provisioners.base import Unanswered
from broker.services.catalogue import plain_profiles, spec_of
from broker.services.layouts import deciding, moving
from broker.services.layouts.machines import hands_of, machine_of
from broker.services.layouts.pools import Pool, pools_of
from ports import doorbell
from tenants.services import audit
from tenants.services.actors import SYSTEM, Actor
from tenants.services.refusals import Refused

log = structlog.get_logger(__name__)
Hint = tuple[str, str, str]


@transaction.atomic
def ask_for(cluster: Cluster, *, actor: Actor, now: datetime) -> None:
    """Have a worker plan a cluster soon: its nodes are asked what they can, which no page may wait for."""
    audit.record("layouts.plan", actor=actor, now=now, subject_id=cluster.pk, subject_label=cluster.name)
    doorbell.ring("broker.plan_layouts", cluster.pk, now=now)


def carry_out(cluster_id: str, *, now: datetime) -> None:
    """Plan a cluster, and where its owner wants that, begin at once."""
    for change in propose(cluster_id, now=now):
        if change.node.cluster.recuts:
            with suppress(Refused):  # it changed while it was planned; the next plan sees it as it is
                deciding.approve(change, actor=SYSTEM, now=now)


def propose(cluster_id: str, *, now: datetime) -> list[LayoutChange]:
    """Plan every pool of a cluster anew and return what is proposed; plans that nobody approved give way.

    The nodes are asked what they can, so no transaction may be open: but only where a card that can all that its model
    can would be cut anew. Where that gains nothing, one that can less gains nothing either: at rest nobody is asked.
    """
    proposed = []
    for pool in pools_of(cluster_id, now=now):
        hands = hands_of(next(iter(pool.nodes.values())))
        if hands is None:
            continue
        plans = _worth_it(pool, dict.fromkeys(pool.nodes))
        try:
            if plans:
                plans = _worth_it(pool, hands.profiles([machine_of(node) for node in pool.nodes.values()]))
        except Unanswered as silence:
            log.warning(
                "no layout is planned: the cluster does not answer", model=pool.model, why=str(silence)
            )
            continue
        proposed += _keep(pool, {each.node: each for each in plans}, now)
    return proposed


def _worth_it(pool: Pool, told: Mapping[str, Mapping[str, int] | None]) -> tuple[NodePlan, ...]:
    """Plan what nodes can become as they told it: who did not stays as it is cut, and what it offers counts."""
    views = [replace(view, open=view.open and view.name in told) for view in pool.views]
    spec = spec_of(pool.model)
    return plan(views, pool.demand, Catalogue(spec, plain_profiles(spec), common(told.values())))


@transaction.atomic
def _keep(pool: Pool, plans: dict[str, NodePlan], now: datetime) -> list[LayoutChange]:
    """Write the plans down; one that says the same as before stays as it is."""
    kept = []
    for change in LayoutChange.objects.filter(node__in=pool.nodes, step=Step.PLANNED).select_related(
        "node__cluster"
    ):
        same = plans.get(change.node_id)
        if same and change.cuts == dict(same.cuts):
            kept.append(change)
            del plans[change.node_id]
        else:
            moving.move(change, Step.CANCELLED, why="another plan took its place", now=now)
    return kept + [_plan(pool, each, now) for each in plans.values()]


def _plan(pool: Pool, each: NodePlan, now: datetime) -> LayoutChange:
    view = next(view for view in pool.views if view.name == each.node)
    change = LayoutChange.objects.create(
        node=pool.nodes[each.node],
        wanted=layout_of(dict(each.cuts)),
        before=layout_of({card.index: card.cut for card in view.cards}),
        gain_milli=each.gain_milli,
        step_at=now,
        planned_at=now,
    )
    cards = f"{len(each.changed)} card{'s' if len(each.changed) > 1 else ''} cut anew"
    why = f"{cards} would serve {each.gain_milli / 1000:.2f} cards' worth more of what is asked for"
    LayoutStep.objects.create(change=change, seq=0, step=Step.PLANNED.value, at=now, why=why)
    return change


def clusters_to_plan() -> list[Hint]:
    """Return a look at every cluster that has cards whose cut is fixed."""
    clusters = Node.objects.filter(gpus__layout_policy=LayoutPolicy.FIXED).values_list(
        "cluster_id", flat=True
    )
    return [("broker.plan_layouts", cluster, "") for cluster in clusters.distinct().order_by("cluster_id")]


def latest(cluster: Cluster) -> dict[str, LayoutChange]:
    """Return the latest change of each node that still matters: under way, proposed, or failed."""
    changes = LayoutChange.objects.filter(node__cluster=cluster).order_by("planned_at", "id")
    return {each.node_id: each for each in changes if not each.over or each.step == Step.QUARANTINED}
