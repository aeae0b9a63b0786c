"""How a cluster's nodes are cut, what is planned for them, and one change step by step."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from broker.domain.cuts import Cut
from broker.domain.repartition import Step as Where
from broker.models import Cluster, LayoutChange, LayoutStep, Node
from broker.models.layouts import cuts_from
from broker.portal.operations import ASKS, OpsRequest, Step, ask, decide, page
from broker.services.layouts import deciding, planning
from broker.services.layouts.pools import Pool, pools_of
from tenants.portal.acts import ops_call
from tenants.services.refusals import Missing


def words(cuts: Mapping[int, Cut]) -> str:
    """Say how a node's cards are cut: `6 cards of 7 × 1g.10gb, 2 left whole`."""
    counts = Counter(cuts.values())
    parts = [
        f"{count} left whole" if cut.whole else f"{count} card{'s' if count > 1 else ''} of {cut}"
        for cut, count in sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    ]
    return ", ".join(parts)


@dataclass(frozen=True)
class Row:
    """A node, how it is cut, and its latest change if that still matters."""

    node: Node
    now: str
    change: LayoutChange | None
    wanted: str


@dataclass(frozen=True)
class Taken:
    """One step of a change and how long it was in it."""

    step: LayoutStep
    lasted: timedelta | None


def cluster_or_missing(pk: str) -> Cluster:
    found = Cluster.objects.filter(pk=pk).first()
    if found is None:
        raise Missing(f"There is no cluster {pk!r}.", fix="Go to Clusters and nodes to see what there is.")
    return found


def change_or_missing(pk: str) -> LayoutChange:
    found = LayoutChange.objects.select_related("node__cluster").filter(pk=pk).first()
    if found is None:
        raise Missing(f"There is no change {pk!r}.", fix="Look at the cluster's layouts.")
    return found


@require_safe
@page("layouts")
def layouts(request: OpsRequest, pk: str) -> HttpResponse:
    """Show how a cluster's nodes are cut, what is asked for, and what is planned or under way."""
    cluster = cluster_or_missing(pk)
    pools = pools_of(pk, now=request.now)
    latest = planning.latest(cluster)
    told = {
        "cluster": cluster,
        "blocks": [{"pool": pool, "demand": _demand(pool), "rows": _rows(pool, latest)} for pool in pools],
        "calls": [ops_call("Nodes and how they are cut", f"clusters/{pk}/layouts")],
    }
    return render(request, "ops/layouts.html", told)


def _rows(pool: Pool, latest: Mapping[str, LayoutChange]) -> list[Row]:
    views = {view.name: {card.index: card.cut for card in view.cards} for view in pool.views}
    rows = []
    for pk, node in pool.nodes.items():
        change = latest.get(pk)
        rows.append(Row(node, words(views[pk]), change, words(change.cuts) if change else ""))
    return rows


def _demand(pool: Pool) -> list[tuple[str, str]]:
    return [(name, f"{milli / 1000:g}") for name, milli in sorted(pool.demand.items()) if milli]


@require_safe
@page("layout")
def change(request: OpsRequest, pk: str) -> HttpResponse:
    """Show one change: what from, what to, and every step with how long it took."""
    found = change_or_missing(pk)
    before, wanted = cuts_from(found.before), found.cuts
    told = {
        "change": found,
        "cards": [
            (index, before.get(index), cut, before.get(index) != cut) for index, cut in sorted(wanted.items())
        ],
        "steps": _taken(found, request.now),
        "quarantined": found.step == Where.QUARANTINED,
        "planned": found.step == Where.PLANNED,
        "calls": [ops_call("This change with its cards and steps", f"layout-changes/{found.pk}")],
    }
    return render(request, "ops/layout.html", told)


def _taken(found: LayoutChange, now: datetime) -> list[Taken]:
    steps = list(LayoutStep.objects.filter(change=found).order_by("seq"))
    ends = [*(step.at for step in steps[1:]), None if found.over else now]
    return [Taken(step, end - step.at if end else None) for step, end in zip(steps, ends, strict=False)]


@ASKS
@page("layouts.plan")
def plan(request: OpsRequest, pk: str) -> HttpResponse:
    """Have a cluster planned anew by a worker."""
    cluster = cluster_or_missing(pk)

    def act(_: str) -> str:
        planning.ask_for(cluster, actor=request.actor, now=request.now)
        return f"{cluster.name} is being planned; what is proposed appears here in a moment."

    begins = "A plan changes nothing until you approve it."
    if cluster.recuts:
        begins = "Plans of this cluster begin by themselves."
    step = Step(
        title=f"Plan the layouts of {cluster.name} now?",
        verb="Plan now",
        back=reverse("ops-layouts", args=[pk]),
        lines=(
            "Demand is what runs, what has waited for two minutes, and half of what ended lately.",
            begins,
        ),
        needs_reason=False,
    )
    return ask(request, step, act)


def _asked(found: LayoutChange, title: str, verb: str, *lines: str, danger: bool = False) -> Step:
    where = f"{found.node.cluster} / {found.node}"
    back = reverse("ops-layout", args=[found.pk])
    hint = "Stands in the change's history and in the audit trail."
    return Step(f"{title} {where}?", verb, back, lines, danger, hint=hint)


@ASKS
@page("layout.approve")
def approve(request: OpsRequest, pk: str) -> HttpResponse:
    """Close a node and cut it once it is empty."""
    found = change_or_missing(pk)
    told = "Nothing new is placed there. Leases go on until their own end; nobody is thrown out."
    step = _asked(found, "Cut", f"Cut {found.node}", told, f"It becomes: {words(found.cuts)}.")
    return decide(request, found, step, deciding.approve, f"{found.node} will be cut once it is empty.")


@ASKS
@page("layout.cancel")
def cancel(request: OpsRequest, pk: str) -> HttpResponse:
    """Call a change off before its node was told."""
    found = change_or_missing(pk)
    step = _asked(found, "Do not cut", "Call it off", "It stays as it is cut now, and is sold again.")
    return decide(request, found, step, deciding.cancel, f"The change of {found.node} is called off.")


@ASKS
@page("layout.again")
def again(request: OpsRequest, pk: str) -> HttpResponse:
    """Try once more what ended in quarantine."""
    found = change_or_missing(pk)
    step = _asked(found, "Try again to cut", "Try again", f"It becomes: {words(found.cuts)}.", danger=True)
    return decide(request, found, step, deciding.again, f"{found.node} is told again.")


@ASKS
@page("layout.back")
def back(request: OpsRequest, pk: str) -> HttpResponse:
    """Return a node that failed to how it was cut before."""
    found = change_or_missing(pk)
    step = _asked(
        found, "Take back", "Take back", f"It becomes: {words(cuts_from(found.before))}.", danger=True
    )
    return decide(request, found, step, deciding.take_back, f"{found.node} is told to become what it was.")
