"""The switch by which a cluster's owner lets two tenants lie on one card of class soft or none."""

from django.http import HttpResponse
from django.urls import reverse

from broker.portal.layouts import cluster_or_missing
from broker.portal.operations import ASKS, OpsRequest, Step, ask, page
from broker.services import sharing
from broker.services.leases import evicting


@ASKS
@page("cluster.share")
def share(request: OpsRequest, pk: str) -> HttpResponse:
    """Let tenants share such cards, where it says so."""
    return _asked(request, pk, shares=True)


@ASKS
@page("cluster.unshare")
def unshare(request: OpsRequest, pk: str) -> HttpResponse:
    """Keep tenants apart again."""
    return _asked(request, pk, shares=False)


def _asked(request: OpsRequest, pk: str, *, shares: bool) -> HttpResponse:
    cluster = cluster_or_missing(pk)

    def act(why: str) -> str:
        cause = evicting.reason(why)
        if not sharing.allow(cluster, shares, why=cause, actor=request.actor, now=request.now):
            return f"{cluster.name} was like that already."
        return f"Two tenants {'may' if shares else 'never'} share a soft card of {cluster.name}."

    lines = (
        "Of classes soft and none: only software, or nothing, stands between those who are on one card.",
        "Whole cards and MIG slices are never affected.",
        "Who waits for such a card may then be placed beside another tenant, at once."
        if shares
        else "Who is side by side already stays so until they leave; nobody new comes beside another tenant.",
    )
    step = Step(
        title=f"Let two tenants share a soft card of {cluster.name}?"
        if shares
        else f"Keep tenants apart on the soft cards of {cluster.name}?",
        verb="Let them share" if shares else "Keep them apart",
        back=reverse("ops-clusters"),
        lines=lines,
        danger=shares,
        hint="Stands in the audit trail.",
    )
    return ask(request, step, act)
