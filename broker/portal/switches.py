"""The pages on which a cluster's owner turns a switch of it on or off, each with what follows from that."""

from dataclasses import dataclass

from django.http import HttpResponse
from django.urls import reverse

from broker.portal.layouts import cluster_or_missing
from broker.portal.operations import ASKS, OpsRequest, Step, ask, page
from broker.services import switches
from broker.services.leases import evicting


@dataclass(frozen=True)
class Words:
    """What is said where a switch is turned one way; {} is the cluster's name."""

    title: str
    verb: str
    lines: tuple[str, ...]
    done: str
    danger: bool = False


APART = (
    "Of classes soft and none: only software, or nothing, stands between those who are on one card.",
    "Whole cards and MIG slices are never affected.",
)
SHARE = Words(
    "Let two tenants share a soft card of {}?",
    "Let them share",
    (*APART, "Who waits for such a card may then be placed beside another tenant, at once."),
    "Two tenants may share a soft card of {}.",
    danger=True,
)
UNSHARE = Words(
    "Keep tenants apart on the soft cards of {}?",
    "Keep them apart",
    (
        *APART,
        "Who is side by side already stays so until they leave; nobody new comes beside another tenant.",
    ),
    "Two tenants never share a soft card of {}.",
)
NOBODY_IS_THROWN_OUT = (
    "A node is cut only when nobody is on it: leases go on until their own end, nobody is thrown out."
)
BEGIN = Words(
    "Let plans of {} begin by themselves?",
    "Let them begin",
    (
        NOBODY_IS_THROWN_OUT,
        "Whoever asks for a shape that no card is cut into waits until one is, and is no longer refused at once.",
    ),
    "Plans of {} begin by themselves from now on.",
)
WAIT = Words(
    "Let each plan of {} wait for a yes?",
    "Let them wait",
    (
        NOBODY_IS_THROWN_OUT,
        "What was approved goes on. Whoever asks for a shape that no card is cut into is refused at once.",
    ),
    "Plans of {} wait for a yes from now on.",
)


@ASKS
@page("cluster.share")
def share(request: OpsRequest, pk: str) -> HttpResponse:
    """Let tenants share such cards, where it says so."""
    return _turn(request, switches.SHARES, pk, SHARE, reverse("ops-clusters"), on=True)


@ASKS
@page("cluster.unshare")
def unshare(request: OpsRequest, pk: str) -> HttpResponse:
    """Keep tenants apart again."""
    return _turn(request, switches.SHARES, pk, UNSHARE, reverse("ops-clusters"), on=False)


@ASKS
@page("layouts.begin")
def begin(request: OpsRequest, pk: str) -> HttpResponse:
    """Let plans begin by themselves."""
    return _turn(request, switches.RECUTS, pk, BEGIN, reverse("ops-layouts", args=[pk]), on=True)


@ASKS
@page("layouts.wait")
def wait(request: OpsRequest, pk: str) -> HttpResponse:
    """Have each plan wait for a yes again."""
    return _turn(request, switches.RECUTS, pk, WAIT, reverse("ops-layouts", args=[pk]), on=False)


def _turn(
    request: OpsRequest, switch: switches.Switch, pk: str, words: Words, back: str, *, on: bool
) -> HttpResponse:
    cluster = cluster_or_missing(pk)

    def act(why: str) -> str:
        cause = evicting.reason(why)
        if not switches.turn(switch, cluster, on, why=cause, actor=request.actor, now=request.now):
            return f"{cluster.name} was like that already."
        return words.done.format(cluster.name)

    step = Step(
        title=words.title.format(cluster.name),
        verb=words.verb,
        back=back,
        lines=words.lines,
        danger=words.danger,
        hint="Stands in the audit trail.",
    )
    return ask(request, step, act)
