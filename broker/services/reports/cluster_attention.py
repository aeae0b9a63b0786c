"""Clusters and relocation plans that need an operator's decision.

Clusters that are frozen, unreachable, without an agent, or with too many orphans.
"""

from collections.abc import Iterable
from datetime import datetime
from itertools import groupby

from django.db.models import Count, Exists, Max, Min, OuterRef, Q, QuerySet

from broker.domain.lifecycle.relocation_states import RelocationPlanState
from broker.models import Cluster, Node, Orphan, RelocationPlan
from broker.services.clusters.observed import observed_objects
from broker.services.clusters.orphan_removal import REMOVAL_DELAY, SIMULATED
from broker.services.reports.attention_items import AttentionItem, AttentionKind


def find_troubled_clusters(*, now: datetime) -> list[AttentionItem]:
    """Return the problems of clusters and their nodes; at most three queries.

    Must run as staff.
    """
    unsold = Exists(unsold_nodes().filter(cluster=OuterRef("pk")))
    rows = Cluster.objects.annotate(heard=Max("watches__last_event_at"), unsold=unsold).order_by("name")
    items = [need for each in rows for need in _cluster_items(each, each.heard, now)]
    nodes = _unsold_node_items() if any(each.unsold for each in rows) else ()
    return [*items, *nodes, *_orphan_items()]


def find_proposed_plans() -> list[AttentionItem]:
    """Return proposed relocation plans that would make room for a waiting lease; one query."""
    proposed = RelocationPlan.objects.filter(state=RelocationPlanState.PROPOSED.value).order_by("proposed_at", "id")
    return [
        AttentionItem(
            AttentionKind.PLAN, f"Moves are proposed for {each.cluster.name}", each.reason, each.pk, each.proposed_at
        )
        for each in proposed.select_related("cluster")
        if each.room_for
    ]


def _cluster_items(cluster: Cluster, heard: datetime | None, now: datetime) -> Iterable[AttentionItem]:
    """Yield the worst problem of a cluster; its consequences need no line of their own."""
    if cluster.frozen:
        why = f"{cluster.frozen}; its reports are ignored until you decide"
        yield AttentionItem(
            AttentionKind.FROZEN, f"{cluster.name} is frozen", why, cluster.pk, cluster.unreachable_since, urgent=True
        )
    elif cluster.unreachable_since:
        why = f"{cluster.unreachable_reason}; no new leases are placed there"
        yield AttentionItem(
            AttentionKind.CLUSTER,
            f"{cluster.name} is unreachable",
            why,
            cluster.pk,
            cluster.unreachable_since,
            urgent=True,
        )
    elif cluster.inventory_paused_reason:
        what = f"The inventory of {cluster.name} needs confirmation"
        yield AttentionItem(AttentionKind.CLUSTER, what, cluster.inventory_paused_reason, cluster.pk, urgent=True)
    elif cluster.provisioner == "kubernetes" and observed_objects.is_agent_silent(heard or cluster.created_at, now):
        why = "no agent has connected yet; start manage.py kube_agent"
        if heard:
            why = "its agent sends no heartbeats; changes are noticed minutes late"
        since = heard or cluster.created_at
        yield AttentionItem(AttentionKind.CLUSTER, f"No agent for {cluster.name}", why, cluster.pk, since, urgent=True)


def unsold_nodes() -> QuerySet[Node]:
    """Return the nodes that are not sold, or not completely, by cluster and name."""
    sold = {"unschedulable_reason": "", "refused_until": None, "resource_shortage": "", "inventory_problem": ""}
    rows = Node.objects.exclude(**sold).select_related("cluster")
    return rows.order_by("cluster__name", "name")


def _unsold_node_items() -> Iterable[AttentionItem]:
    """Yield one item for each cluster with nodes that are not sold, or not completely."""
    for cluster, rows in groupby(unsold_nodes(), key=lambda node: node.cluster):
        nodes = list(rows)
        first, others = nodes[0], len(nodes) - 1
        why = first.unsold_reason if not others else f"{first.name}: {first.unsold_reason}"
        what = f"{cluster.name} / {first.name} is not sold" if not others else f"{len(nodes)} nodes of {cluster.name}"
        if others:
            yield AttentionItem(AttentionKind.NODES, f"{what} are not sold", why, cluster.pk)
        else:
            yield AttentionItem(AttentionKind.NODE, what, why, first.pk)


def _orphan_items() -> Iterable[AttentionItem]:
    undecided = Orphan.objects.filter(deletion_approved_at=None, deletion_requested_at=None)
    waiting = undecided.filter(Q(known=False) | Q(held_at__isnull=False))
    rows = waiting.values("cluster", "cluster__name").annotate(
        count=Count("id"), held=Count("id", filter=Q(held_at__isnull=False)), since=Min("found_at"), id=Max("id")
    )
    for row in rows.order_by("cluster__name"):
        place, what = (row["cluster__name"] or "the simulated fleet", "object" if row["count"] == 1 else "objects")
        why = (
            f"they are deleted {REMOVAL_DELAY.total_seconds() / 3600:.0f} hours after they were found,"
            " unless they belong to a lease"
        )
        if row["held"]:
            why = f"{row['held']} would be deleted at once, which needs your confirmation"
        yield AttentionItem(
            AttentionKind.ORPHANS,
            f"{row['count']} {what} in {place} without a lease",
            why,
            row["cluster"] or SIMULATED,
            row["since"],
            urgent=bool(row["held"]),
        )
