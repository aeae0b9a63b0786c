"""The switch by which a cluster's owner lets plans for its nodes begin without a yes to each."""

from django.http import HttpResponse
from django.urls import reverse

from broker.portal.layouts import cluster_or_missing
from broker.portal.operations import ASKS, OpsRequest, Step, ask, page
from broker.services.layouts import beginning
from broker.services.leases import evicting


@ASKS
@page("layouts.begin")
def begin(request: OpsRequest, pk: str) -> HttpResponse:
    """Let plans begin by themselves."""
    return _asked(request, pk, recuts=True)


@ASKS
@page("layouts.wait")
def wait(request: OpsRequest, pk: str) -> HttpResponse:
    """Have each plan wait for a yes again."""
    return _asked(request, pk, recuts=False)


def _asked(request: OpsRequest, pk: str, *, recuts: bool) -> HttpResponse:
    cluster = cluster_or_missing(pk)

    def act(why: str) -> str:
        cause = evicting.reason(why)
        if not beginning.allow(cluster, recuts, why=cause, actor=request.actor, now=request.now):
            return f"{cluster.name} was like that already."
        return f"Plans of {cluster.name} {'begin by themselves' if recuts else 'wait for a yes'} from now on."

    lines = (
        "A node is cut only when nobody is on it: leases go on until their own end, nobody is thrown out.",
        "Whoever asks for a shape that no card is cut into waits until one is, and is no longer refused at once."
        if recuts
        else "What was approved goes on. Whoever asks for a shape that no card is cut into is refused at once.",
    )
    step = Step(
        title=f"Let plans of {cluster.name} begin by themselves?"
        if recuts
        else f"Let each plan of {cluster.name} wait for a yes?",
        verb="Let them begin" if recuts else "Let them wait",
        back=reverse("ops-layouts", args=[pk]),
        lines=lines,
        hint="Stands in the audit trail.",
    )
    return ask(request, step, act)
