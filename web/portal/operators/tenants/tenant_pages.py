"""Tenant page of operators: members, quotas, suspend and resume."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from ports import clock
from tenants.domain import quota_limits
from tenants.models import Project, QuotaKind, Tenant
from tenants.services import quotas, rls, tenants
from tenants.services.tenant_overview import tenant_overviews
from web.portal.actions import find_or_missing, operator_api_call, outcome_message, redirect_with_errors
from web.portal.authentication import POST, operator_required
from web.portal.forms import QuotaLimitForm, ReasonForm
from web.portal.projects.quota_fields import QuotaField

MAX_TENANTS = 100


@operator_required("tenants.list")
def list_tenants(request: Any) -> HttpResponse:
    """List the tenants with their root quotas."""
    rows = Tenant.objects.order_by("name", "id")
    if words := request.GET.get("q", "")[:100].replace("\x00", ""):
        rows = rows.filter(name__icontains=words)
    shown = list(rows[: MAX_TENANTS + 1])
    known, now = tenant_overviews(shown[:MAX_TENANTS]), clock.now()
    lines = [
        {
            "tenant": tenant,
            "members": known[tenant.pk].members,
            "quotas": [
                QuotaField.of(kind, known[tenant.pk].quotas.get(kind), now) for kind in quota_limits.QUOTA_UNITS
            ],
        }
        for tenant in shown[:MAX_TENANTS]
    ]
    context = {
        "lines": lines,
        "more": len(shown) > MAX_TENANTS,
        "words": words,
        "kinds": [(kind, name, unit) for kind, (name, _, unit) in quota_limits.QUOTA_UNITS.items()],
        "calls": [operator_api_call(_("Tenants"), "ops/tenants", q=words, limit=MAX_TENANTS)],
    }
    return render(request, "operators/tenants/tenants.html", context)


def find_tenant(pk: str) -> Tenant:
    with rls.staff_scope():
        tenant: Tenant = find_or_missing(Tenant.objects.all(), pk)
    return tenant


@operator_required("tenants.limit", methods=POST)
def set_tenant_quota(request: Any, pk: str) -> HttpResponse:
    """Set or lift a quota of a tenant's project.

    Of its root project, unless one is named.
    """
    tenant, form = find_tenant(pk), QuotaLimitForm(request.POST)
    if not form.is_valid():
        return redirect_with_errors(request, form, to=reverse("ops-tenant", args=[pk]))
    with (
        outcome_message(request, done=_("Quota of {tenant_name} saved.").format(tenant_name=tenant.name)),
        rls.tenant_scope(tenant.pk),
    ):
        wanted = request.POST.get("project", "")
        projects = Project.objects.filter(tenant=tenant)
        quotas.set_or_lift(
            project=find_or_missing(projects, wanted) if wanted else projects.get(parent=None),
            kind=QuotaKind(form.cleaned_data["kind"]),
            limit=form.cleaned_data["limit"],
            actor=request.actor,
            now=clock.now(),
        )
    return redirect("ops-tenant", pk=pk)


@operator_required("tenants.suspend", methods=POST)
def suspend_tenant(request: Any, pk: str) -> HttpResponse:
    """Suspend a tenant: it can read but change nothing."""
    tenant, form = find_tenant(pk), ReasonForm(request.POST)
    if not form.is_valid():
        return redirect_with_errors(request, form, to=reverse("ops-tenant", args=[pk]))
    with (
        outcome_message(request, done=_("{tenant_name} was suspended.").format(tenant_name=tenant.name)),
        rls.tenant_scope(tenant.pk),
    ):
        tenants.suspend(tenant, actor=request.actor, now=clock.now(), why=form.cleaned_data["why"])
    return redirect("ops-tenant", pk=pk)


@operator_required("tenants.resume", methods=POST)
def resume_tenant(request: Any, pk: str) -> HttpResponse:
    """Resume a suspended tenant."""
    tenant = find_tenant(pk)
    with (
        outcome_message(request, done=_("{tenant_name} is active again.").format(tenant_name=tenant.name)),
        rls.tenant_scope(tenant.pk),
    ):
        tenants.resume(tenant, actor=request.actor, now=clock.now(), why="by an operator")
    return redirect("ops-tenant", pk=pk)
