"""Projects page: the tree with its quotas, and a project's settings."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from broker.services.leases import project_archive
from ports import clock
from tenants.domain import quota_limits
from tenants.models import Project, Quota, QuotaKind
from tenants.services import projects, quotas, tenants
from tenants.services.authentication import require
from web.portal.actions import api_call, find_or_missing, list_page, outcome_message, redirect_with_errors
from web.portal.authentication import POST, tenant_required
from web.portal.forms import NameForm, ProjectForm, QuotaLimitForm, TenantForm
from web.portal.projects.quota_fields import QuotaField

PAGE_SIZE = 20  # each may have several quota bars
MAX_ARCHIVED = 20


@tenant_required("projects.read")
def list_projects(request: Any) -> HttpResponse:
    """Show the project tree with its quotas, paged."""
    shown, now = list_page(request, request.projects, most=PAGE_SIZE), clock.now()
    nodes = shown.rows
    set_here: dict[str, list[Quota]] = {}
    for quota in Quota.objects.filter(tenant=request.tenant, project__in=[p.pk for p in nodes]).order_by("kind"):
        set_here.setdefault(quota.project_id, []).append(quota)
    top = min((len(p.path) for p in request.projects), default=1)
    for node in nodes:
        node.depth = len(node.path) - top
        node.quotas_here = [_quota_row(q, now) for q in set_here.get(node.pk, [])]
        node.may_write = request.roles.may("projects.write", node.path)
    led = [node for node in request.projects if request.roles.may("projects.write", node.path)]
    context = {
        "nodes": nodes,
        "shown": shown,
        "call": api_call("projects", "archived=false&limit=500"),
        "call_quotas": api_call("quotas", "limit=500"),
        "archived": list_archived_projects(request),
        "may_write": bool(led),
        "may_tenant": request.roles.may("tenant.write"),
        "form": ProjectForm(projects=led),
        "tenant_form": TenantForm(
            auto_id="tenant_%s",
            initial={"name": request.tenant.name, "time_zone": request.tenant.time_zone},
            lives_in=request.tenant.time_zone,
        ),
    }
    return render(request, "projects/projects.html", context)


@tenant_required("projects.write")
def show_project(request: Any, pk: str) -> HttpResponse:
    """Show one project's settings: quotas, name, archiving."""
    project = find_own_project(request, pk, "projects.write")
    here = {quota.kind: quota for quota in Quota.objects.filter(project=project)}
    context = {
        "node": project,
        "may_limit": project.parent_id is not None and quotas.may_set(request.roles, project),
        "quotas": [QuotaField.of(kind, here.get(kind), clock.now()) for kind in quota_limits.QUOTA_UNITS],
    }
    return render(request, "projects/project.html", context)


def _quota_row(quota: Quota, now: datetime) -> dict[str, Any]:
    name, _, unit = quota_limits.QUOTA_UNITS[quota.kind]
    used = quota.used_at(now)
    return {
        "pk": quota.pk,
        "kind": quota.kind,
        "name": name,
        "unit": unit,
        "limit": quota_limits.format_count(quota.kind, quota.soft_limit),
        "used": quota_limits.format_count(quota.kind, used),
        "counts": (used, quota.soft_limit),
        "bar": (used, max(quota.soft_limit, 1)),
    }


@tenant_required("projects.write", methods=POST)
def create_project(request: Any) -> HttpResponse:
    """Create a project below another."""
    form = ProjectForm(request.POST, projects=request.projects)
    if not form.is_valid() or form.project is None:
        return redirect_with_errors(request, form, to=reverse("projects"))
    parent = form.project
    require(request.roles, "projects.write", parent.path)
    name = form.cleaned_data["name"]
    with outcome_message(request, done=_("{name} was created.").format(name=name)):
        projects.create(parent=parent, name=name, actor=request.actor, now=clock.now())
    return redirect("projects")


def find_own_project(request: Any, pk: str, action: str) -> Project:
    """Return an open project the visitor sees and may change."""
    project: Project = find_or_missing(Project.objects.open().filter(pk__in=[p.pk for p in request.projects]), pk)
    require(request.roles, action, project.path)
    return project


@tenant_required("projects.write", methods=POST)
def rename_project(request: Any, pk: str) -> HttpResponse:
    """Rename a project."""
    project = find_own_project(request, pk, "projects.write")
    form = NameForm(request.POST)
    if not form.is_valid():
        return redirect_with_errors(request, form, to=reverse("project", args=[pk]))
    with outcome_message(request, done=_("Renamed.")):
        projects.rename(project, name=form.cleaned_data["name"], actor=request.actor, now=clock.now())
    return redirect("projects")


@tenant_required("projects.write", methods=POST)
def archive_project(request: Any, pk: str) -> HttpResponse:
    """Archive a project: nothing in it begins to cost."""
    project = find_own_project(request, pk, "projects.write")
    done = _("{project_name} is archived; active leases continue until they end.").format(project_name=project.name)
    with outcome_message(request, done=done):
        project_archive.archive_project(project, actor=request.actor, now=clock.now())
    return redirect("projects")


@tenant_required("projects.write", methods=POST)
def unarchive_project(request: Any, pk: str) -> HttpResponse:
    """Open an archived project again."""
    project = find_or_missing(visible_rows(request), pk)
    require(request.roles, "projects.write", project.path)
    with outcome_message(request, done=_("{project_name} is open again.").format(project_name=project.name)):
        projects.unarchive(project, actor=request.actor, now=clock.now())
    return redirect("projects")


@dataclass(frozen=True, slots=True)
class ArchivedProjects:
    """The projects that were archived last, and whether there are more."""

    rows: list[Project]
    more: bool
    call: str


def list_archived_projects(request: Any) -> ArchivedProjects:
    """Return the archived projects of the page."""
    rows = list(archived_projects(request)[: MAX_ARCHIVED + 1])
    for node in rows:
        node.may_write = request.roles.may("projects.write", node.path)  # type: ignore[attr-defined]
    call = api_call("projects", "archived=true&limit=500")
    return ArchivedProjects(rows[:MAX_ARCHIVED], len(rows) > MAX_ARCHIVED, call)


def archived_projects(request: Any) -> QuerySet[Project]:
    """Return the archived projects that the visitor may see, the latest first."""
    return visible_rows(request).filter(archived_at__isnull=False).order_by("-archived_at", "-id")


def visible_rows(request: Any) -> QuerySet[Project]:
    """Return the projects that the visitor may see, open or archived."""
    rows = Project.objects.filter(tenant=request.tenant)
    reach = request.roles.projects("projects.read")
    return rows if reach is None else rows.filter(path__overlap=sorted(reach))


@tenant_required("quotas.write", methods=POST)
def set_project_quota(request: Any, pk: str) -> HttpResponse:
    """Set a quota on a project."""
    project = find_own_project(request, pk, "quotas.write")
    quotas.require_rights_above(request.roles, project)
    form = QuotaLimitForm(request.POST)
    if not form.is_valid():
        return redirect_with_errors(request, form, to=reverse("project", args=[pk]))
    kind, limit = QuotaKind(form.cleaned_data["kind"]), form.cleaned_data["limit"]
    done = (
        _("The quota of {project_name} is set.") if limit is not None else _("The quota of {project_name} is lifted.")
    )
    with outcome_message(request, done=done.format(project_name=project.name)):
        quotas.set_or_lift(project=project, kind=kind, limit=limit, actor=request.actor, now=clock.now())
    return redirect("project", pk=pk)


@tenant_required("tenant.write", methods=POST)
def edit_tenant(request: Any) -> HttpResponse:
    """Rename the tenant or change its time zone."""
    require(request.roles, "tenant.write")
    form = TenantForm(request.POST, lives_in=request.tenant.time_zone)
    if not form.is_valid():
        return redirect_with_errors(request, form, to=reverse("projects"))
    with outcome_message(request, done=_("Saved.")):
        tenants.change(request.tenant, actor=request.actor, now=clock.now(), **form.cleaned_data)
    return redirect("projects")
