"""Template pages of a project: list, create, change and delete."""

from dataclasses import dataclass, replace
from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from broker.models import LaunchTemplate, OperatorTemplate, Secret, SecretKind
from broker.services.launch_templates import template_store
from tenants.models import Project
from tenants.services.errors import ObjectNotFound, ProblemError
from web.portal import api_examples
from web.portal.actions import ListPage, list_page
from web.portal.launch_templates.template_form import TemplateForm, empty_form, form_of, parse_template_form
from web.portal.page_context import GET_OR_POST, PageRequest, Scope, may_in_project, require_in_project, tenant_page

API_PAGE_SIZE = 500


@dataclass(frozen=True, slots=True)
class TemplateRow:
    """One template of the list."""

    template: LaunchTemplate
    may_write: bool


@dataclass(frozen=True, slots=True)
class TemplateListPage:
    """The templates of a project and those of the operators."""

    listed: ListPage  # of TemplateRow
    shared: list[OperatorTemplate]
    may_write: bool
    call: str

    shared_call = api_examples.curl_get("/templates/shared")


@dataclass(frozen=True, slots=True)
class TemplateFormPage:
    """The form of a new or saved template."""

    form: TemplateForm
    logins: list[Secret]
    template: LaunchTemplate | None = None


@tenant_page("templates.read")
def list_templates(request: PageRequest) -> HttpResponse:
    """List the templates of the open project, those below it and the operators'."""
    found = visible_templates(request.scope)
    listed = list_page(request, found, count=found.count())
    rows = [TemplateRow(each, request.roles.may("templates.write", each.project.path)) for each in listed.rows]
    page = TemplateListPage(
        listed=replace(listed, rows=rows),
        shared=list(OperatorTemplate.objects.order_by("name")),
        may_write=may_in_project(request, "templates.write"),
        call=api_examples.curl_list("/templates", request.scope, limit=API_PAGE_SIZE),
    )
    return render(request, "launch_templates/templates.html", {"page": page})


@tenant_page("templates.read", methods=GET_OR_POST)
def create_template(request: PageRequest) -> HttpResponse:
    """Save a new template of the open project."""
    require_in_project(request, "templates.write", request.project)

    def save(values: dict[str, Any]) -> str:
        made = template_store.create_template(
            project=request.project, values=values, actor=request.actor, now=request.now
        )
        return _("{name} was saved. Choose it when you launch.").format(name=made.name)

    form = parse_template_form(request.POST) if request.method == "POST" else empty_form()
    return form_response(request, TemplateFormPage(form, logins_of(request.project)), save)


@tenant_page("templates.read", methods=GET_OR_POST)
def edit_template(request: PageRequest, pk: str) -> HttpResponse:
    """Change a template; leases keep what they were launched with."""
    template = find_template(request, pk)
    require_in_project(request, "templates.write", template.project)

    def save(values: dict[str, Any]) -> str:
        changed = template_store.change_template(template, values, actor=request.actor, now=request.now)
        return _("{name} was changed.").format(name=changed.name)

    form = parse_template_form(request.POST) if request.method == "POST" else form_of(template)
    return form_response(request, TemplateFormPage(form, logins_of(template.project), template), save)


@tenant_page("templates.read", methods=GET_OR_POST)
def delete_template(request: PageRequest, pk: str) -> HttpResponse:
    """Delete a template, after a confirmation page."""
    template = find_template(request, pk)
    require_in_project(request, "templates.write", template.project)
    if request.method == "POST":
        template_store.delete_template(template, actor=request.actor, now=request.now)
        messages.success(request, _("{name} was deleted.").format(name=template.name))
        return redirect("templates")
    return render(request, "launch_templates/delete.html", {"template": template})


def form_response(request: PageRequest, page: TemplateFormPage, save: Any) -> HttpResponse:
    """Show a template's form; a sent one is saved, or shown with its errors."""
    if request.method == "POST":
        values = page.form.values()
        if not page.form.has_errors:
            try:
                messages.success(request, save(values))
                return redirect("templates")
            except ProblemError as refusal:
                page.form.show_problem(refusal)
    status = 400 if page.form.has_errors else 200
    return render(request, "launch_templates/template.html", {"page": page}, status=status)


def find_template(request: PageRequest, pk: str) -> LaunchTemplate:
    """Return a template, or raise ObjectNotFound if the visitor may not see it."""
    template = LaunchTemplate.objects.filter(tenant=request.tenant, pk=pk).select_related("project").first()
    if template is None or not request.roles.may("templates.read", template.project.path):
        raise ObjectNotFound(_("This template does not exist."), fix=_("Choose one from the list of templates."))
    return template


def visible_templates(scope: Scope) -> QuerySet[LaunchTemplate]:
    """Return the open project's templates and those below."""
    rows = LaunchTemplate.objects.filter(tenant=scope.tenant)
    if not scope.whole:
        rows = rows.filter(project__in=scope.projects().values("pk"))
    return rows.select_related("project").order_by("project__name", "name")


def logins_of(project: Project) -> list[Secret]:
    """Return the registry logins that a project's templates may use."""
    return list(Secret.objects.filter(project=project, kind=SecretKind.REGISTRY).order_by("name"))
