"""The projects page: the tree with its quotas, and a project's own settings."""

from datetime import datetime
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from ports import clock
from tenants.domain import limits
from tenants.models import Project, Quota, QuotaKind
from tenants.portal.acts import act, call, complain, find, part
from tenants.portal.doors import in_tenant
from tenants.portal.forms import LimitForm, NameForm, ProjectForm, TenantForm
from tenants.services import projects, quotas, tenants
from tenants.services.permissions import require

ROWS = 20  # each may have several quotas, with a bar for each


@require_GET
@in_tenant("projects.read")
def page(request: Any) -> HttpResponse:
    """Show the tree, a page of it at once: every project with what limits it."""
    shown, now = part(request, request.projects, most=ROWS), clock.now()
    nodes = shown.rows
    set_here: dict[str, list[Quota]] = {}
    for quota in Quota.objects.filter(tenant=request.tenant, project__in=[p.pk for p in nodes]).order_by(
        "kind"
    ):
        set_here.setdefault(quota.project_id, []).append(quota)
    top = min((len(p.path) for p in request.projects), default=1)
    for node in nodes:
        node.depth = len(node.path) - top
        node.quotas_here = [_shown(q, now) for q in set_here.get(node.pk, [])]
        node.may_write = request.roles.may("projects.write", node.path)
    led = [node for node in request.projects if request.roles.may("projects.write", node.path)]
    told = {
        "nodes": nodes,
        "shown": shown,
        "call": call("projects", "archived=false&limit=500"),
        "call_quotas": call("quotas", "limit=500"),
        "may_write": bool(led),
        "may_tenant": request.roles.may("tenant.write"),
        "form": ProjectForm(projects=led),
        "tenant_form": TenantForm(
            initial={"name": request.tenant.name, "time_zone": request.tenant.time_zone},
            lives_in=request.tenant.time_zone,
        ),
    }
    return render(request, "tenants/projects.html", told)


@require_GET
@in_tenant("projects.write")
def one(request: Any, pk: str) -> HttpResponse:
    """Show one project's own settings: its quotas, its name, its end."""
    project = own(request, pk, "projects.write")
    told = {
        "node": project,
        "may_limit": project.parent_id is not None and quotas.may_set(request.roles, project),
        "kinds": [(kind, name, unit) for kind, (name, _, unit) in limits.SHOWN.items()],
    }
    return render(request, "tenants/project.html", told)


def _shown(quota: Quota, now: datetime) -> dict[str, Any]:
    name, _, unit = limits.SHOWN[quota.kind]
    used = quota.used_at(now)
    return {
        "pk": quota.pk,
        "kind": quota.kind,
        "name": name,
        "unit": unit,
        "limit": limits.written(quota.kind, quota.soft_limit),
        "used": limits.written(quota.kind, used),
        "counts": (used, quota.soft_limit),
        "bar": (used, max(quota.soft_limit, 1)),
    }


@require_POST
@in_tenant("projects.write")
def create(request: Any) -> HttpResponse:
    """Make a project below another."""
    form = ProjectForm(request.POST, projects=request.projects)
    if not form.is_valid() or form.project is None:
        return complain(request, form, to=reverse("projects"))
    parent = form.project
    require(request.roles, "projects.write", parent.path)
    name = form.cleaned_data["name"]

    def do() -> None:
        projects.create(parent=parent, name=name, actor=request.actor, now=clock.now())

    return act(request, do, done=f"{name} is ready.", to=reverse("projects"))


def own(request: Any, pk: str, action: str) -> Project:
    """Return an open project the visitor sees and may change."""
    project: Project = find(Project.objects.open().filter(pk__in=[p.pk for p in request.projects]), pk)
    require(request.roles, action, project.path)
    return project


@require_POST
@in_tenant("projects.write")
def rename(request: Any, pk: str) -> HttpResponse:
    """Give a project another name."""
    project = own(request, pk, "projects.write")
    form = NameForm(request.POST)
    if not form.is_valid():
        return complain(request, form, to=reverse("projects"))

    def do() -> None:
        projects.rename(project, name=form.cleaned_data["name"], actor=request.actor, now=clock.now())

    return act(request, do, done="Renamed.", to=reverse("projects"))


@require_POST
@in_tenant("projects.write")
def archive(request: Any, pk: str) -> HttpResponse:
    """Close a project to new leases."""
    project = own(request, pk, "projects.write")

    def do() -> None:
        projects.archive(project, actor=request.actor, now=clock.now())

    done = f"{project.name} is archived; what runs in it ends in its own time."
    return act(request, do, done=done, to=reverse("projects"))


@require_POST
@in_tenant("quotas.write")
def limit(request: Any, pk: str) -> HttpResponse:
    """Set a quota on a project."""
    project = own(request, pk, "quotas.write")
    quotas.must_lead_above(request.roles, project)
    form = LimitForm(request.POST)
    if not form.is_valid():
        return complain(request, form, to=reverse("projects"))
    kind = QuotaKind(form.cleaned_data["kind"])

    def do() -> None:
        quotas.set_limit(
            project=project,
            kind=kind,
            limit=form.cleaned_data["limit"],
            actor=request.actor,
            now=clock.now(),
        )

    return act(request, do, done=f"The quota of {project.name} is set.", to=reverse("projects"))


@require_POST
@in_tenant("tenant.write")
def change_tenant(request: Any) -> HttpResponse:
    """Rename the tenant or move it to another time zone."""
    require(request.roles, "tenant.write")
    form = TenantForm(request.POST, lives_in=request.tenant.time_zone)
    if not form.is_valid():
        return complain(request, form, to=reverse("projects"))

    def do() -> None:
        tenants.change(request.tenant, actor=request.actor, now=clock.now(), **form.cleaned_data)

    return act(request, do, done="Saved.", to=reverse("projects"))
