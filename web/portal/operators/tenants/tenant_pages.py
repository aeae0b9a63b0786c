"""Tenant page of operators: members, quotas, suspend and resume."""

from typing import Any

from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ports import clock
from tenants.domain import quota_limits
from tenants.models import Project, QuotaKind, Tenant
from tenants.services import quotas, rls, tenants
from tenants.services.tenant_overview import tenant_overviews
from web.portal.actions import (
    LIST_PAGE_SIZE,
    find_or_missing,
    operator_api_call,
    outcome_message,
    redirect_with_errors,
)
from web.portal.authentication import POST, operator_required
from web.portal.forms import QuotaLimitForm, ReasonForm
from web.portal.operators.list_specs import ListState, OperatorList
from web.portal.operators.operator_lists import csv_time, read_lists, wants_csv
from web.portal.operators.page_context import OperatorRequest, operator_page
from web.portal.projects.quota_fields import QuotaField


def _tenant_cells(each: Tenant) -> tuple[object, ...]:
    times = (csv_time(at) for at in (each.created_at, each.released_at, each.suspended_at))
    return each.pk, each.name, each.currency, each.time_zone, *times, each.founder


TENANT_LIST = OperatorList(
    name="tenants",
    heads="tenant tenant_name currency time_zone created_at released_at suspended_at created_by",
    cells=_tenant_cells,
    at="created_at",
    states=(
        ListState("", gettext_lazy("All")),
        ListState("new", gettext_lazy("New"), Q(released_at=None)),
        ListState("suspended", gettext_lazy("Suspended"), Q(suspended_at__isnull=False)),
    ),
    search=("name", "founder", "pk"),
)


@operator_page("tenants.list")
def list_tenants(request: OperatorRequest) -> Any:
    """List the tenants with their root quotas."""
    lists = read_lists(request, TENANT_LIST)
    rows = Tenant.objects.order_by("name", "id")
    if wants_csv(request):
        return lists.csv((TENANT_LIST, lambda: rows))
    listing = lists.read(TENANT_LIST, rows)
    known, now = tenant_overviews(listing.rows), request.now
    lines = [
        {
            "tenant": tenant,
            "members": known[tenant.pk].members,
            "quotas": [
                QuotaField.of(kind, known[tenant.pk].quotas.get(kind), now) for kind in quota_limits.QUOTA_UNITS
            ],
        }
        for tenant in listing.rows
    ]
    context = {
        "listing": listing.with_rows(lines),
        "filter": lists.count_states(TENANT_LIST, rows),
        "kinds": [(kind, name, unit) for kind, (name, _, unit) in quota_limits.QUOTA_UNITS.items()],
        "calls": [operator_api_call(_("Tenants"), "ops/tenants", q=lists.filter.words, limit=LIST_PAGE_SIZE)],
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
