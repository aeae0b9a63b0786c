"""What waits for an operator's word: clusters frozen, silent, unfollowed or full of strangers, and plans of moves."""

from collections.abc import Iterable
from datetime import datetime

from django.db.models import Count, Max, Min, Q

from broker.domain.moves import PlanState
from broker.models import Cluster, MovePlan, Orphan
from broker.services import sightings
from broker.services.fleet.needs import Kind, Need
from broker.services.orphans import QUARANTINE, SIMULATED


def clusters(*, now: datetime) -> list[Need]:
    """Return what is the matter with clusters; two queries. Must run as staff."""
    rows = Cluster.objects.annotate(heard=Max("watches__heard_at")).order_by("name")
    return [*(need for each in rows for need in _of(each, each.heard, now)), *_orphans()]


def plans() -> list[Need]:
    """Return the plans of moves that would make room for somebody who waits; one query."""
    proposed = MovePlan.objects.filter(state=PlanState.PROPOSED.value).order_by("proposed_at", "id")
    return [
        Need(Kind.PLAN, f"Moves are proposed for {each.cluster.name}", each.reason, each.pk, each.proposed_at)
        for each in proposed.select_related("cluster")
        if each.room_for
    ]


def _of(cluster: Cluster, heard: datetime | None, now: datetime) -> Iterable[Need]:
    """Name the worst of it: what follows from that needs no line of its own."""
    if cluster.frozen:
        why = f"{cluster.frozen}; nothing it says is believed until you decide"
        yield Need(
            Kind.FROZEN, f"{cluster.name} is frozen", why, cluster.pk, cluster.silent_since, urgent=True
        )
    elif cluster.silent_since:
        why = f"{cluster.silent_why}; nothing new is placed there"
        yield Need(
            Kind.CLUSTER, f"{cluster.name} is silent", why, cluster.pk, cluster.silent_since, urgent=True
        )
    elif cluster.halted:
        what = f"The inventory of {cluster.name} waits"
        yield Need(Kind.CLUSTER, what, cluster.halted, cluster.pk, urgent=True)
    elif cluster.provisioner == "kubernetes" and sightings.is_silent(heard or cluster.created_at, now):
        why = "no agent has ever followed it: start manage.py kube_agent"
        if heard:
            why = "its agent writes nothing: what happens there is noticed minutes late"
        since = heard or cluster.created_at
        yield Need(Kind.CLUSTER, f"Nobody follows {cluster.name}", why, cluster.pk, since, urgent=True)


def _orphans() -> Iterable[Need]:
    undecided = Orphan.objects.filter(agreed_at=None, told_at=None)
    waiting = undecided.filter(Q(known=False) | Q(held_at__isnull=False))
    rows = waiting.values("cluster", "cluster__name").annotate(
        count=Count("id"),
        held=Count("id", filter=Q(held_at__isnull=False)),
        since=Min("found_at"),
        id=Max("id"),
    )
    for row in rows.order_by("cluster__name"):
        place, what = (
            row["cluster__name"] or "the simulated fleet",
            "object" if row["count"] == 1 else "objects",
        )
        why = f"they go {QUARANTINE.total_seconds() / 3600:.0f} hours after they were found, unless a lease claims them"
        if row["held"]:
            why = f"{row['held']} would go at once, which is too many to go without your word"
        yield Need(
            Kind.ORPHANS,
            f"{row['count']} {what} in {place} without a lease",
            why,
            row["cluster"] or SIMULATED,
            row["since"],
            urgent=bool(row["held"]),
        )
