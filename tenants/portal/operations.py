"""Operators' page of tenants: who they are, what they may take, suspended or not."""

from datetime import datetime
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from ports import clock
from tenants.domain import limits
from tenants.models import Project, Quota, QuotaKind, Tenant
from tenants.portal.acts import act, complain, find, ops_call
from tenants.portal.doors import in_operations
from tenants.portal.forms import LimitForm, WhyForm
from tenants.services import quotas, tenants, walls
from tenants.services.roots import standings

SHOWN = 100


@require_GET
@in_operations("tenants.list")
def tenants_page(request: Any) -> HttpResponse:
    """Show the tenants with their root quotas."""
    rows = Tenant.objects.order_by("name", "id")
    if words := request.GET.get("q", "")[:100].replace("\x00", ""):
        rows = rows.filter(name__icontains=words)
    shown = list(rows[: SHOWN + 1])
    known, now = standings(shown[:SHOWN]), clock.now()
    lines = [
        {
            "tenant": tenant,
            "members": known[tenant.pk].members,
            "quotas": [_line(kind, known[tenant.pk].quotas.get(kind), now) for kind in limits.SHOWN],
        }
        for tenant in shown[:SHOWN]
    ]
    told = {
        "lines": lines,
        "more": len(shown) > SHOWN,
        "words": words,
        "kinds": [(kind, name, unit) for kind, (name, _, unit) in limits.SHOWN.items()],
        "calls": [ops_call("Tenants", "ops/tenants", q=words, limit=SHOWN)],
    }
    return render(request, "tenants/ops_tenants.html", told)


def _line(kind: str, quota: Quota | None, now: datetime) -> dict[str, Any]:
    name, _, unit = limits.SHOWN[kind]
    line: dict[str, Any] = {"kind": kind, "name": name, "unit": unit, "limit": None}
    if quota is not None:
        used = quota.used_at(now)
        line |= {
            "limit": limits.shown(kind, quota.soft_limit),
            "words": (limits.written(kind, used), limits.written(kind, quota.soft_limit)),
            "counts": (used, quota.soft_limit),
            "bar": (used, max(quota.soft_limit, 1)),
        }
    return line


def looked_up(pk: str) -> Tenant:
    with walls.as_staff():
        tenant: Tenant = find(Tenant.objects.all(), pk)
    return tenant


@require_POST
@in_operations("tenants.limit")
def limit(request: Any, pk: str) -> HttpResponse:
    """Set a quota of a tenant's root project."""
    tenant, form = looked_up(pk), LimitForm(request.POST)
    if not form.is_valid():
        return complain(request, form, to=reverse("tenants"))
    kind = QuotaKind(form.cleaned_data["kind"])

    def do() -> None:
        with walls.as_tenant(tenant.pk):
            quotas.set_limit(
                project=Project.objects.get(tenant=tenant, parent=None),
                kind=kind,
                limit=form.cleaned_data["limit"],
                actor=request.actor,
                now=clock.now(),
            )

    return act(request, do, done=f"The quota of {tenant.name} is set.", to=reverse("tenants"))


@require_POST
@in_operations("tenants.suspend")
def suspend(request: Any, pk: str) -> HttpResponse:
    """Let a tenant look but change nothing."""
    tenant, form = looked_up(pk), WhyForm(request.POST)
    if not form.is_valid():
        return complain(request, form, to=reverse("tenants"))

    def do() -> None:
        with walls.as_tenant(tenant.pk):
            tenants.suspend(tenant, actor=request.actor, now=clock.now(), why=form.cleaned_data["why"])

    return act(request, do, done=f"{tenant.name} is suspended.", to=reverse("tenants"))


@require_POST
@in_operations("tenants.resume")
def resume(request: Any, pk: str) -> HttpResponse:
    """Let a suspended tenant work again."""
    tenant = looked_up(pk)

    def do() -> None:
        with walls.as_tenant(tenant.pk):
            tenants.resume(tenant, actor=request.actor, now=clock.now(), why="by an operator")

    return act(request, do, done=f"{tenant.name} may work again.", to=reverse("tenants"))
