"""All cards as a table, one card with its history, and taking it out of service."""

from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from billing.portal.ops.panel import card_or_missing, described, panel_of
from billing.services import earnings
from broker.models import Gpu, Health
from broker.portal.operations import OpsRequest, Step, ask, page
from broker.services import inventory
from broker.services.fleet import cards, history
from broker.services.fleet.uses import CHOICES
from broker.services.leases import evicting
from tenants.portal.acts import MOST, begin, ops_call
from tenants.services.refusals import Missing
from tenants.services.walls import as_staff

ROWS = 20  # of cards that may hold seven leases each
ASKS = require_http_methods(["GET", "HEAD", "POST"])
FILTERS = {
    "": "All",
    "sold": "Sold",
    "free": "With room",
    "fragmented": "Fragmented",
    "out": "Out of service",
}


@require_safe
@page("cards")
def table(request: OpsRequest) -> HttpResponse:
    """Show the rows of the map: every card with its slices."""
    fleet = cards.load()
    chosen = request.GET.get("show", "")
    chosen = chosen if chosen in FILTERS else ""
    found = [card for card in fleet if not chosen or CHOICES[chosen](card)]
    start = begin(request.GET.get("from", ""), len(found))
    shown = found[start : start + ROWS]
    priced = earnings.of_leases([s.lease for card in shown for s in card.slices], now=request.now)
    told = {
        "rows": [panel_of(card, priced) for card in shown],
        "count": len(found),
        "start": start + 1,
        "end": start + len(shown),
        "before": _page(chosen, max(start - ROWS, 0)) if start else "",
        "after": _page(chosen, start + ROWS) if start + ROWS < len(found) else "",
        "filters": [
            {
                "url": _page(name, 0),
                "label": label,
                "count": sum(1 for card in fleet if not name or CHOICES[name](card)),
                "current": name == chosen,
            }
            for name, label in FILTERS.items()
        ],
        "calls": [ops_call("Cards with their slices", "ops/gpus", show=chosen, limit=MOST)],
    }
    return render(request, "ops/cards.html", told)


def _page(show: str, start: int) -> str:
    query = urlencode({name: value for name, value in (("show", show), ("from", start)) if value})
    return reverse("ops-cards") + (f"?{query}" if query else "")


@require_safe
@page("card")
def card(request: OpsRequest, pk: str) -> HttpResponse:
    """Show one card: its cut, who is on it, who was, and what happened to it."""
    found = card_or_missing(pk)
    gpu = Gpu.objects.select_related("node__cluster").get(pk=found.id)
    told = {
        "gpu": gpu,
        "chosen": described(found, now=request.now),
        "past": history.leases_on(gpu),
        "changes": history.changes_of(gpu.node, gpu),
        "calls": [
            ops_call("This card with its slices", f"ops/gpus/{found.id}"),
            ops_call("Who was on it", "ops/allocations", gpu=found.id, limit=history.LATELY),
        ],
    }
    return render(request, "ops/card.html", told)


def change(request: OpsRequest, pk: str, health: Health, verb: str, *lines: str) -> HttpResponse:
    """Ask about a card's health, then set it; a reason is required."""
    gpu = Gpu.objects.select_related("node__cluster").filter(pk=pk).first()
    if gpu is None:
        raise Missing(f"There is no card {pk!r}.", fix="Go to the list of cards.")
    where = f"{gpu.node.cluster.name} / {gpu.node.name} / card {gpu.index}"
    with as_staff():
        held = len(card_or_missing(pk).slices)

    def act(why: str) -> str:
        reason = evicting.reason(why)
        inventory.set_health(gpu, health, reason=reason, actor=request.actor, now=request.now)
        return f"{where} is {health.label.lower()}."

    step = Step(
        title=f"{verb} {where}?",
        verb=f"{verb} card {gpu.index}",
        back=reverse("ops-card", args=[pk]),
        lines=(*lines, f"{held} lease{'s are' if held != 1 else ' is'} on it now."),
        danger=health is Health.UNHEALTHY,
        hint="Stands in the card's history and in the audit trail.",
    )
    return ask(request, step, act)


@ASKS
@page("card.quarantine")
def quarantine(request: OpsRequest, pk: str) -> HttpResponse:
    """Take a card out of the pool."""
    told = (
        "Nothing new is placed on it. Leases that are on it go on; release them one by one if they must go."
    )
    return change(request, pk, Health.UNHEALTHY, "Quarantine", told)


@ASKS
@page("card.return")
def give_back(request: OpsRequest, pk: str) -> HttpResponse:
    """Sell a card again."""
    told = "It is sold again at once, and the queue of its pool is served."
    return change(request, pk, Health.HEALTHY, "Return", told)
