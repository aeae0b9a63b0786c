"""What single tenants pay for an offering instead of the list's price: agreed from a moment on, ended at another."""

from datetime import datetime
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from billing.models import PriceVersion
from billing.portal.ops.offerings import looked_at, moment_of, offering_or_missing, when_of
from billing.services import own_prices, prices, repricing
from billing.services.repricing import Preview
from broker.models import Offering
from broker.portal.operations import ASKS, OpsRequest, Step, ask, page
from tenants.models import Tenant
from tenants.portal.acts import MOST, ops_call
from tenants.portal.refused import because
from tenants.services.refusals import Invalid, Refused
from tenants.services.walls import as_staff


@ASKS
@page("offering.own")
def edit(request: OpsRequest, pk: str) -> HttpResponse:
    """Show tenants' own prices of an offering; `?try=` shows a tenant's last month at one; a POST agrees one."""
    found = offering_or_missing(pk)
    refusal: Refused | None = None
    looked: Preview | None = None
    try:
        if request.method == "POST":
            messages.success(request, _agree(request, found))
            return redirect("ops-offering-own", pk=pk)
        if "try" in request.GET:
            looked = _tried(request, found)
    except Refused as said:
        refusal = said
        because(request, said.detail)
    with as_staff():
        told = _told(request, found, refusal) | looked_at(looked)
        return render(request, "ops/own_prices.html", told, status=refusal.status if refusal else 200)


def _told(request: OpsRequest, found: Offering, refusal: Refused | None) -> dict[str, Any]:
    typed = request.POST if request.method == "POST" else request.GET
    versions = list(
        PriceVersion.objects.filter(offering=found, tenant_id__isnull=False).order_by("tenant_id", "-valid")
    )
    tenants = list(Tenant.objects.order_by("name", "pk")[:MOST])
    names = dict(Tenant.objects.filter(pk__in={row.tenant_id for row in versions}).values_list("pk", "name"))
    chosen = next((each for each in tenants if each.pk == typed.get("tenant")), None)
    return {
        "offering": found,
        "versions": [
            {"version": row, "name": names.get(row.tenant_id or ""), "when": when_of(row, request.now)}
            for row in versions
        ],
        "tenants": tenants,
        "chosen": chosen,
        "currency": chosen.currency if chosen else "",
        "listed": _listed(found, chosen, request.now),
        "refusal": refusal,
        "wrong": getattr(refusal, "field", ""),
        "typed": typed,
        "price": typed.get("price", typed.get("try", "")),
        "calls": [
            ops_call(
                "Their own prices",
                "ops/price-versions",
                offering=found.pk,
                own="true",
                limit=MOST,
            ),
            ops_call(
                "Last month at another price",
                f"ops/offerings/{found.pk}/preview",
                tenant=typed.get("tenant", ""),
                per_hour=typed.get("try", ""),
            ),
        ],
    }


def _listed(found: Offering, tenant: Tenant | None, now: datetime) -> int | None:
    """Return what the list says in the tenant's currency."""
    if tenant is None:
        return None
    price = prices.at(now, currency=tenant.currency, offerings=[found.pk]).get(found.pk)
    return price.nano_per_hour if price else None


def _tenant(text: str) -> Tenant:
    with as_staff():
        tenant = Tenant.objects.filter(pk=text).first()
    if tenant is None:
        raise Invalid("tenant", "There is no such tenant.", fix="Choose one of the list.")
    return tenant


def _tried(request: OpsRequest, found: Offering) -> Preview:
    tenant, nano = _tenant(request.GET.get("tenant", "")), prices.nano_of(request.GET["try"])
    with as_staff():
        return repricing.preview(
            found, currency=tenant.currency, nano_per_hour=nano, now=request.now, tenant=tenant.pk
        )


def _agree(request: OpsRequest, found: Offering) -> str:
    form = request.POST
    tenant = _tenant(form.get("tenant", ""))
    since = moment_of(form.get("since", ""), request.now, field="since")
    until = moment_of(form["until"], request.now, field="until") if form.get("until", "").strip() else None
    own_prices.agree(
        tenant=tenant,
        offering=found,
        nano_per_hour=prices.nano_of(form.get("price", "")),
        since=since,
        until=until,
        free="free" in form,
        actor=request.actor,
        now=request.now,
    )
    return f"{tenant.name} has a price of its own from {since:%d %b %Y %H:%M} UTC."


@ASKS
@page("offering.own.end")
def end(request: OpsRequest, pk: str) -> HttpResponse:
    """Let a tenant's own price end now, after one has seen what that means."""
    with as_staff():
        row = own_prices.find(pk)
        tenant, found = Tenant.objects.get(pk=row.tenant_id or ""), row.offering

    def act(_why: str) -> str:
        own_prices.end(row, at=request.now, actor=request.actor, now=request.now)
        return f"{tenant.name} pays the list's price of {found.label} from now on."

    step = Step(
        title=f"End the price of {tenant.name} for {found.label}?",
        verb="End it now",
        back=reverse("ops-offering-own", args=[pk]),
        lines=(
            "From this second on the list's price holds. Leases that cite a quote keep what it promised.",
        ),
        danger=True,
        needs_reason=False,
    )
    return ask(request, step, act)
