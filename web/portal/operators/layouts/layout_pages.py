"""Layout pages: how nodes are partitioned, planned repartitions, and one in detail."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from broker.domain.repartition.gpu_layouts import GpuLayout
from broker.domain.repartition.repartition_steps import RepartitionStep as Where
from broker.models import Cluster, Node, Repartition, RepartitionLogEntry
from broker.models.repartitions import layouts_from_stored
from broker.services.repartition import repartition_decisions, repartition_planner
from broker.services.repartition.repartition_pools import RepartitionPool, load_repartition_pools
from web.portal.actions import operator_api_call
from web.portal.operators.page_context import (
    SAFE_OR_POST,
    Confirmation,
    OperatorRequest,
    confirm_action,
    confirm_decision,
    find_in_scope,
    operator_page,
)


def partitioning_text(cuts: Mapping[int, GpuLayout]) -> str:
    """Describe a node's partitioning: `6 GPUs of 7 × 1g.10gb, 2 left whole`."""
    counts = Counter(cuts.values())
    parts = [
        _("{count} whole").format(count=count)
        if cut.is_whole_gpu
        else ngettext("{n} GPU with {layout}", "{n} GPUs with {layout}", count).format(n=count, layout=cut)
        for cut, count in sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    ]
    return ", ".join(parts)


@dataclass(frozen=True)
class NodeLayoutRow:
    """A node, its partitioning, and its latest repartition if that still matters."""

    node: Node
    now: str
    change: Repartition | None
    wanted: str


@dataclass(frozen=True)
class RepartitionStepRow:
    """One step of a repartition and how long it took."""

    step: RepartitionLogEntry
    lasted: timedelta | None


def find_cluster(pk: str) -> Cluster:
    return find_in_scope(Cluster.objects.all(), pk, _("Cluster"), fix=_("Select it from Clusters and nodes."))


def find_layout_change(pk: str) -> Repartition:
    rows = Repartition.objects.select_related("node__cluster")
    return find_in_scope(rows, pk, _("Layout change"), fix=_("Open the cluster's layouts."))


@operator_page("layouts")
def show_layouts(request: OperatorRequest, pk: str) -> HttpResponse:
    """Show how a cluster's nodes are partitioned, the demand, and planned repartitions."""
    cluster = find_cluster(pk)
    pools = load_repartition_pools(pk, now=request.now)
    latest = repartition_planner.latest_repartitions(cluster)
    context = {
        "cluster": cluster,
        "blocks": [{"pool": pool, "demand": _demand_rows(pool), "rows": _node_rows(pool, latest)} for pool in pools],
        "calls": [operator_api_call(_("Nodes and their layouts"), f"clusters/{pk}/layouts")],
    }
    return render(request, "operators/layouts/layouts.html", context)


def _node_rows(pool: RepartitionPool, latest: Mapping[str, Repartition]) -> list[NodeLayoutRow]:
    views = {view.name: {gpu.index: gpu.layout for gpu in view.gpus} for view in pool.views}
    rows = []
    for pk, node in pool.nodes.items():
        change = latest.get(pk)
        rows.append(
            NodeLayoutRow(
                node, partitioning_text(views[pk]), change, partitioning_text(change.layouts) if change else ""
            )
        )
    return rows


def _demand_rows(pool: RepartitionPool) -> list[tuple[str, str]]:
    return [(name, f"{milli / 1000:g}") for name, milli in sorted(pool.demand.items()) if milli]


@operator_page("layout_change")
def show_layout_change(request: OperatorRequest, pk: str) -> HttpResponse:
    """Show one repartition: before, after, and every step with its duration."""
    found = find_layout_change(pk)
    before, wanted = layouts_from_stored(found.before), found.layouts
    context = {
        "change": found,
        "gpus": [(index, before.get(index), cut, before.get(index) != cut) for index, cut in sorted(wanted.items())],
        "steps": _step_rows(found, request.now),
        "quarantined": found.step == Where.QUARANTINED,
        "planned": found.step == Where.PLANNED,
        "calls": [operator_api_call(_("This change with its GPUs and steps"), f"ops/layout-changes/{found.pk}")],
    }
    return render(request, "operators/layouts/layout_change.html", context)


def _step_rows(found: Repartition, now: datetime) -> list[RepartitionStepRow]:
    steps = list(RepartitionLogEntry.objects.filter(change=found).order_by("seq"))
    ends = [*(step.at for step in steps[1:]), None if found.is_over else now]
    return [RepartitionStepRow(step, end - step.at if end else None) for step, end in zip(steps, ends, strict=False)]


@operator_page("layouts.plan", methods=SAFE_OR_POST)
def plan_layouts(request: OperatorRequest, pk: str) -> HttpResponse:
    """Queue planning of a cluster's layouts."""
    cluster = find_cluster(pk)

    def act(_why: str) -> str:
        repartition_planner.request_planning(cluster, actor=request.actor, now=request.now)
        return _("Planning layouts of {cluster_name}. Proposals appear here shortly.").format(cluster_name=cluster.name)

    begins = _("A plan changes nothing until you approve it.")
    if cluster.auto_repartition:
        begins = _("Plans of this cluster start automatically.")
    step = Confirmation(
        title=_("Plan layouts of {cluster_name}?").format(cluster_name=cluster.name),
        verb=_("Plan now"),
        back=reverse("ops-layouts", args=[pk]),
        lines=(
            _("Demand counts running leases, leases queued for two minutes, and half of the recently ended ones."),
            begins,
        ),
        needs_reason=False,
    )
    return confirm_action(request, step, act)


def _layout_confirmation(found: Repartition, title: str, verb: str, *lines: str, danger: bool = False) -> Confirmation:
    where = f"{found.node.cluster} / {found.node}"
    back = reverse("ops-layout-change", args=[found.pk])
    hint = _("Recorded in the change's history and in the audit log.")
    return Confirmation(f"{title} {where}?", verb, back, lines, danger, hint=hint)


@operator_page("layout_change.approve", methods=SAFE_OR_POST)
def approve_layout_change(request: OperatorRequest, pk: str) -> HttpResponse:
    """Approve a repartition: close the node and repartition it once it is empty."""
    found = find_layout_change(pk)
    effect = _("No new leases are placed there. Running leases continue until they end.")
    step = _layout_confirmation(
        found,
        _("Change layout of"),
        _("Change layout of {node}").format(node=found.node),
        effect,
        _("New layout: {cuts}.").format(cuts=partitioning_text(found.layouts)),
    )
    return confirm_decision(
        request,
        found,
        step,
        repartition_decisions.approve_repartition,
        _("The layout of {node} changes once the node is empty.").format(node=found.node),
    )


@operator_page("layout_change.cancel", methods=SAFE_OR_POST)
def cancel_layout_change(request: OperatorRequest, pk: str) -> HttpResponse:
    """Cancel a repartition before its node is changed."""
    found = find_layout_change(pk)
    step = _layout_confirmation(
        found,
        _("Cancel the layout change of"),
        _("Cancel change"),
        _("The current layout stays, and the node is available again."),
    )
    return confirm_decision(
        request,
        found,
        step,
        repartition_decisions.cancel_repartition,
        _("The layout change of {node} was cancelled.").format(node=found.node),
    )


@operator_page("layout_change.retry", methods=SAFE_OR_POST)
def retry_layout_change(request: OperatorRequest, pk: str) -> HttpResponse:
    """Retry a repartition that ended in quarantine."""
    found = find_layout_change(pk)
    step = _layout_confirmation(
        found,
        _("Retry the layout change of"),
        _("Retry"),
        _("New layout: {cuts}.").format(cuts=partitioning_text(found.layouts)),
        danger=True,
    )
    return confirm_decision(
        request,
        found,
        step,
        repartition_decisions.retry_repartition,
        _("The layout change of {node} is retried.").format(node=found.node),
    )


@operator_page("layout_change.roll_back", methods=SAFE_OR_POST)
def roll_back_layout_change(request: OperatorRequest, pk: str) -> HttpResponse:
    """Roll a failed node back to its previous partitioning."""
    found = find_layout_change(pk)
    step = _layout_confirmation(
        found,
        _("Roll back"),
        _("Roll back"),
        _("New layout: {before}.").format(before=partitioning_text(layouts_from_stored(found.before))),
        danger=True,
    )
    return confirm_decision(
        request,
        found,
        step,
        repartition_decisions.roll_back_repartition,
        _("The layout of {node} is rolled back.").format(node=found.node),
    )
