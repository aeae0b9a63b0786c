"""Launch: one page on which one says what, how and until when, beside a quote that follows every change."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from billing.portal import calls, rail, shelf, wishes
from billing.portal.pages import PageRequest, may, must, page
from billing.portal.shelf import Item, Sold
from billing.portal.volumes import gib
from billing.services import citing
from broker.domain.moves import stays
from broker.domain.states import Isolation
from broker.domain.workloads import TEMPLATES, template_for
from broker.models import Lease, Volume
from broker.services.leases import request as asking
from broker.services.volumes import keeping, mounting
from ports import ids
from tenants.services import answers
from tenants.services.refusals import Refused

FIELDS = (
    "name",
    "count",
    "lasts",
    "until",
    "image",
    "command",
    "env",
    "ssh_keys",
    "volume",
)  # each shows its own error


@require_http_methods(["GET", "POST"])
@page("leases.read")
def launch(request: PageRequest) -> HttpResponse:
    if request.method == "POST":
        must(request, "leases.write", request.project)
        return form(request, request.POST, sent=True)
    return form(request, again(request))


@require_http_methods(["GET", "POST"])
@page("leases.read", asks_only=True)
def quoted(request: PageRequest) -> HttpResponse:
    """Show the page for what is filled in so far. It is sent as a form is: an address is too short for some of it,
    and kept where nobody wants to find the rest.
    """
    if request.method != "POST":  # whoever switched the project there, or signed in again
        return redirect("launch")
    return form(request, instead(request.POST))


def form(request: PageRequest, asked: QueryDict, *, sent: bool = False) -> HttpResponse:
    """Read the form; start what it asks for if it was sent, and show it with its quote where that is not possible."""
    wish = wishes.read(request, asked)
    all_items = shelf.items(shelf.sold(request))
    model = model_of(all_items, asked)
    each = pick([item for item in all_items if model in ("", "all", item.offering.gpu_model_id)], wish)
    if each is None:
        return render(request, "billing/launch_empty.html", {"now": request.now})
    wanted = wish.wanted(each.offering, ZoneInfo(request.tenant.time_zone))
    stale = ""  # what became of the quote that the form carried
    reused = False  # whoever went back after a launch and changed the form; the browser still has its old key
    if sent:
        if wish.offering != each.offering.pk:
            wish.errors["offering"] = "Nothing that is sold was chosen. Choose a slice from the list."
        try:
            if not wish.errors and (done := start(request, wanted, wish)):
                return done
        except answers.KeyReused:
            reused = True
        except citing.NOT_KEPT as refusal:
            stale = refusal.detail
    # Keys and variables are not sent with every change of the form: they are judged when it is sent.
    quote = rail.quote(request, each, wanted if sent else replace(wanted, workload="", env={}, ssh_keys=()))
    refused = ""
    if quote.refused:
        place, words = rail.complaint(quote.refused)
        if place in FIELDS:
            wish.errors.setdefault(place, words)
        else:
            refused = words
    model = model or each.offering.model
    may_write = may(request, "leases.write")
    shown = [item for item in all_items if model in ("all", item.offering.gpu_model_id)]
    context: dict[str, Any] = {
        "wish": wish,
        "each": each,
        "items": shown,
        "several_regions": len({item.offering.region for item in shown}) > 1,
        "models": models(all_items, model),
        "model": model,
        "classes": classes(all_items, each),
        "choices": wishes.CHOICES,
        "links": wishes.LINKS,
        "volumes": list(mounting.free(request.project).select_related("cluster")),
        "quote": quote,
        "others": quote.others,
        "refused": refused,
        "stuck": bool(refused or wish.errors),
        "may_write": may_write,
        "may_launch": may_write and request.tenant.suspended_at is None,
        "project": request.project,
        "reused": reused,
        "stays": wish.movable and stays(Isolation(each.offering.isolation), wanted.quantity),
        "stale": stale,
        "key": (not reused and asked.get("key")) or ids.secret(),
        "now": request.now,
        "call": calls.post("/leases", body(request, each, wish, wanted)),
        "call_offerings": calls.get("/offerings?state=published&limit=500"),
        "call_quote": calls.post("/quotes", body(request, each, wish, wanted), key=False),
    }
    return render(request, "billing/launch.html", context, status=409 if sent else 200)


def again(request: PageRequest) -> QueryDict:
    """Return what the address asks for; `again` names a lease that one sees, whose terms are the first proposal."""
    asked = request.GET.copy()
    like = Lease.objects.for_tenant(request.tenant).filter(pk=asked.get("again", ""))
    lease = like.select_related("offering", "project").first()
    if lease and request.roles.may("leases.read", lease.project.path):
        runs = lease.workload or template_for(lease.image)
        asked.setdefault("offering", lease.offering_id)
        asked.setdefault("class", lease.offering.price_class)
        asked.setdefault("count", str(lease.quantity))
        asked.setdefault("topology", lease.topology)
        asked.setdefault("lasts", wishes.written(timedelta(seconds=lease.max_duration_s)))
        asked.setdefault("runs", runs)
        asked.setdefault("image", "" if lease.image == TEMPLATES[runs].image else lease.image)
        asked.setdefault("ssh_keys", "\n".join(lease.ssh_keys))
        asked.setdefault("command", lease.command)
        for terms in ("same_node", "movable"):
            if getattr(lease, terms):
                asked.setdefault(terms, "on")
    return asked


def instead(asked: QueryDict) -> QueryDict:
    """Return the form with what one of the "Instead" buttons names in place of what was chosen."""
    offering, _, price_class = asked.get("instead", "").partition(" ")
    if not offering:
        return asked
    changed = asked.copy()
    changed["offering"], changed["class"], changed["model"] = offering, price_class, ""
    return changed


def model_of(items: list[Item], asked: QueryDict) -> str:
    """Return the GPU model whose slices are looked at: one that is sold, all, or nothing where none is named."""
    known = {"all", *(item.offering.gpu_model_id for item in items)}
    wanted = asked.get("model", "")
    return wanted if wanted in known else ""


def pick(items: list[Item], wish: wishes.Wish) -> Sold | None:
    """Return the offering the form names, on the terms it names; the first that has a free slice otherwise."""
    for item in items:
        if any(sold.offering.pk == wish.offering for sold in item.terms.values()):
            chosen = next(s for s in item.terms.values() if s.offering.pk == wish.offering)
            return item.terms.get(wish.price_class, chosen)
    free = [item for item in items if item.free and item.nano_per_hour is not None]
    # Half a card or less suits most first tries; of equal ones, what there is most of.
    small = sorted((item for item in free if item.size * 2 <= item.grid), key=lambda i: (-i.size, -i.free))
    best = [item for item in small if item.offering.gpu_model_id == free[0].offering.gpu_model_id]
    found = next(iter(best or small or free or items), None)
    return found.terms.get(wish.price_class, found.first) if found else None


def start(request: PageRequest, wanted: asking.Wanted, wish: wishes.Wish) -> HttpResponse | None:
    """Launch it once, however often the button was pressed; None when it is refused.

    Raises what is said of a quote that no longer holds: there is another one to take then.
    """
    stands_for = answers.Asked(
        tenant_id=request.tenant.pk,
        bearer=request.actor.id,
        method="POST",
        path=request.path,
        key=request.POST.get("key", "")[:255] or ids.secret(),
        digest=answers.digest_of({k: v for k, v in request.POST.items() if k != "csrfmiddlewaretoken"}),
    )
    if before := answers.find(stands_for):
        return HttpResponseRedirect(before.headers["Location"])
    try:
        if wish.volume == wishes.NEW:
            wanted = replace(wanted, volume=new_volume(request, wish).pk)
    except Refused as refusal:
        wish.errors["volume"] = f"{refusal.detail} {refusal.fix.text}"
        return None
    try:
        lease = asking.request(wanted, project=request.project, actor=request.actor, now=request.now)
    except citing.NOT_KEPT:
        raise
    except Refused:
        return None
    where = reverse("lease", args=[lease.pk])
    answers.keep(stands_for, status=302, headers={"Location": where}, body="", now=request.now)
    messages.success(request, f"{lease.name} is asked for. It is charged once it is active.")
    return redirect(where)


def new_volume(request: PageRequest, wish: wishes.Wish) -> Volume:
    """Make a volume that is called after the lease; a lease that is refused takes it along."""
    return keeping.create(
        project=request.project, name=wish.name, size_gib=gib(wish.gib), actor=request.actor, now=request.now
    )


def models(items: list[Item], current: str) -> list[dict[str, Any]]:
    """Return one choice per GPU model, with how many shapes of it are sold."""
    known: dict[str, list[Item]] = {}
    for item in items:
        known.setdefault(item.offering.model, []).append(item)
    found = [
        {"value": value, "label": listed[0].model, "current": value == current}
        for value, listed in known.items()
    ]
    return [*found, {"value": "all", "label": "All", "current": current == "all"}]


def classes(items: list[Item], each: Sold) -> list[dict[str, Any]]:
    """Return the terms the chosen shape is sold on."""
    item = next(item for item in items if item.first.shape == each.shape)
    words = {
        "on_demand": "On-demand",
        "spot": f"Spot \N{MINUS SIGN}{item.spot_saves} %",
        "reserved": "Reserved",
    }
    return [
        {"value": value, "label": words[value], "current": value == each.offering.price_class}
        for value in words
        if value in item.terms
    ]


def body(request: PageRequest, each: Sold, wish: wishes.Wish, wanted: asking.Wanted) -> dict[str, Any]:
    """Return the form as the body of a call."""
    filled: dict[str, Any] = {
        "project": request.project.pk,
        "offering": each.offering.pk,
        "name": wish.name,
        "quantity": wanted.quantity,
        "max_duration_s": wanted.max_duration_s,
        "workload": wanted.workload,
    }
    if wanted.image:
        filled["image"] = wanted.image
    if wanted.ssh_keys:
        filled["ssh_keys"] = list(wanted.ssh_keys)
    if wanted.env:
        filled["env"] = dict.fromkeys(wanted.env, "…")  # the page is kept in histories; values may be secrets
    if wanted.end_date:
        filled["end_date"] = wanted.end_date.isoformat()
    if wanted.command:
        filled["command"] = wanted.command
    if wanted.volume:
        filled["volume"] = wanted.volume
    if wanted.same_node:
        filled["same_node"] = True
    if wanted.topology:
        filled["topology"] = wanted.topology
    if wanted.movable:
        filled["movable"] = True
    return filled
