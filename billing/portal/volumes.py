"""Volumes: what stays when leases end, which lease has it, and how much room is left."""

from typing import Any

from django.contrib import messages
from django.db.models import Prefetch
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from billing.portal import calls
from billing.portal.pages import PageRequest, Scope, may, must, page
from billing.services.storage import asking
from broker.domain.states import VolumeState
from broker.models import Lease, Volume
from broker.models.volumes import VolumeQuerySet
from broker.services.volumes import keeping
from ports import ids
from tenants.models import QuotaKind
from tenants.services import answers, quotas
from tenants.services.refusals import Missing, Refused

SHOWN = 200
THERE = ",".join(state.value for state in VolumeState if state is not VolumeState.DELETED)
SUGGESTED_GIB = "50"


@require_http_methods(["GET", "POST"])
@page("leases.read")
def volumes(request: PageRequest) -> HttpResponse:
    """List what there is in the open project, and make another one in it."""
    form = {"name": "", "size": SUGGESTED_GIB, **errors_of(None)}
    if request.method == "POST":
        must(request, "leases.write", request.project)
        form |= {"name": request.POST.get("name", "").strip()[:120], "size": request.POST.get("size", "")[:9]}
        try:
            return make(request, str(form["name"]), str(form["size"]))
        except answers.KeyReused:  # whoever went back and changed the form; the browser still has its old key
            form["again"] = True
        except Refused as refusal:
            form |= errors_of(refusal)
    listed = list(there(request.scope)[: SHOWN + 1])
    cost = asking.so_far([each.pk for each in listed if each.used_at], now=request.now)
    for each in listed:
        each.cost = cost.get(each.pk)  # type: ignore[attr-defined]
    shown = {
        "volumes": listed[:SHOWN],
        "more": len(listed) > SHOWN,
        "gib": sum(each.size_gib for each in listed),
        "room": room(request),
        "prices": asking.per_month(request.tenant, now=request.now),
        "currency": request.tenant.currency,
        "form": form,
        "key": ("again" not in form and request.POST.get("key")) or ids.secret(),
        "project": request.project,
        "may_write": may(request, "leases.write"),
        "now": request.now,
        "call": calls.listing("/volumes", request.scope, state=THERE, limit=SHOWN),
        "call_make": calls.post(
            "/volumes", {"project": request.project.pk, "name": "data", "size_gib": int(SUGGESTED_GIB)}
        ),
    }
    failed = request.method == "POST"
    return render(request, "billing/volumes.html", shown, status=409 if failed else 200)


def make(request: PageRequest, name: str, size: str) -> HttpResponse:
    """Make a volume once, however often the button was pressed."""
    asked = answers.Asked(
        tenant_id=request.tenant.pk,
        bearer=request.actor.id,
        method="POST",
        path=request.path,
        key=request.POST.get("key", "")[:255] or ids.secret(),
        digest=answers.digest_of({"name": name, "size": size}),
    )
    if answers.find(asked):
        return redirect("volumes")
    made = keeping.create(
        project=request.project, name=name, size_gib=gib(size), actor=request.actor, now=request.now
    )
    answers.keep(asked, status=302, headers={"Location": request.path}, body="", now=request.now)
    messages.success(request, f"{made.name} is yours. It is made when the first lease uses it.")
    return redirect("volumes")


@require_http_methods(["GET", "POST"])
@page("leases.read")
def delete(request: PageRequest, pk: str) -> HttpResponse:
    """Delete one, after one has seen what that means."""
    volume = found(request, pk)
    must(request, "leases.write", volume.project)
    error = ""
    if request.method == "POST":
        try:
            keeping.delete(volume, actor=request.actor, now=request.now)
        except Refused as refusal:
            error = f"{refusal.detail} {refusal.fix.text}"
        else:
            messages.success(request, f"{volume.name} is being deleted.")
            return redirect("volumes")
    shown = {"volume": volume, "error": error, "now": request.now}
    return render(request, "billing/volume_delete.html", shown, status=409 if error else 200)


def found(request: PageRequest, pk: str) -> Volume:
    """Return a volume; one the visitor may not see is missing, like one that never was."""
    volume = with_holder(Volume.objects.for_tenant(request.tenant)).there().filter(pk=pk).first()
    if volume is None or not request.roles.may("leases.read", volume.project.path):
        raise Missing("There is no such volume here.", fix="Look it up in the list of volumes.")
    return volume


def there(scope: Scope) -> VolumeQuerySet:
    """Return the volumes of the open project and all below it, with who has each; two queries."""
    rows = Volume.objects.for_tenant(scope.tenant).there()
    if not scope.whole:
        rows = rows.filter(project__in=scope.projects().values("pk"))
    return with_holder(rows).order_by("project__name", "name")


def with_holder(rows: VolumeQuerySet) -> VolumeQuerySet:
    holding = Prefetch("leases", queryset=Lease.objects.live(), to_attr="held_by")
    return rows.select_related("project", "cluster").prefetch_related(holding)


def room(request: PageRequest) -> quotas.Room | None:
    """Return how much room the open project may still take; None where nothing was ever taken yet."""
    rooms = quotas.room([request.project], now=request.now)[request.project.pk]
    return next((each for each in rooms if each.kind == QuotaKind.STORAGE), None)


def gib(text: str) -> int:
    """Read a size; what is no whole number is as impossible as nought."""
    return int(text) if text.isascii() and text.isdigit() else 0


def errors_of(refusal: Refused | None) -> dict[str, Any]:
    """Say which field is wrong: a size that is out of bounds or too much for the quota, or else the name."""
    told: dict[str, Any] = {"name_error": "", "size_error": ""}
    if refusal:
        of_name = refusal.code == "name-taken" or getattr(refusal, "field", "") == "name"
        told["name_error" if of_name else "size_error"] = f"{refusal.detail} {refusal.fix.text}"
    return told
