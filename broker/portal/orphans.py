"""What operators decide about clusters that are not what our books say: delete what is left over, take one as it is."""

from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from broker.models import Orphan
from broker.portal.layouts import cluster_or_missing
from broker.portal.operations import ASKS, OpsRequest, Step, ask, page
from broker.services import freezing, orphans
from broker.services.leases import evicting

SHOWN = 12


@ASKS
@page("orphans.agree")
def agree(request: OpsRequest, pk: str) -> HttpResponse:
    """Show what no lease accounts for in a cluster, and let exactly that go."""
    cluster = None if pk == orphans.SIMULATED else cluster_or_missing(pk)
    place = cluster.name if cluster else "the simulated fleet"
    waiting = Orphan.objects.filter(cluster=cluster, agreed_at=None, told_at=None).order_by("-pk")
    # What comes to light after the page was shown is not agreed to by it.
    shown = request.GET.get("until", "")
    if not shown.isdecimal() or len(shown) > 18:
        newest = waiting.first()
        return redirect(f"{request.path}?until={newest.pk if newest else 0}")
    names = sorted(waiting.filter(pk__lte=int(shown)).values_list("name", flat=True))

    def act(why: str) -> str:
        where = cluster.pk if cluster else None
        count = orphans.agree(where, names, why=evicting.reason(why), actor=request.actor, now=request.now)
        return f"{count} objects in {place} go with the next sweep, within four minutes."

    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    step = Step(
        title=f"Delete what no lease accounts for in {place}?",
        verb=f"Delete {len(names)} objects",
        back=reverse("control-room"),
        lines=(
            f"These are ours, and our books know no lease for them: {', '.join(names[:SHOWN])}{more}."
            if names
            else "There is nothing: every object of ours belongs to a lease.",
            "If the database was restored from a backup, they may be leases that it has forgotten: then do not.",
        ),
        danger=True,
        hint="Stands in the audit trail.",
    )
    return ask(request, step, act)


@ASKS
@page("cluster.thaw")
def thaw(request: OpsRequest, pk: str) -> HttpResponse:
    """Take a cluster that is no longer what it was as it is now."""
    cluster = cluster_or_missing(pk)

    def act(why: str) -> str:
        freezing.thaw(cluster, why=evicting.reason(why), actor=request.actor, now=request.now)
        return f"{cluster.name} is taken as it is now."

    step = Step(
        title=f"Take {cluster.name} as it is now?",
        verb="Take it as it is",
        back=reverse("ops-clusters"),
        lines=(
            f"It was frozen: {cluster.frozen}." if cluster.frozen else "It is not frozen.",
            "Leases whose pods it does not have end at their last proof of life. Pods it has and our books do not "
            "wait a day before they are deleted.",
        ),
        danger=True,
        hint="Stands in the audit trail.",
    )
    return ask(request, step, act)
