"""Operators' templates: list, create, change and delete what every tenant can launch."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _

from broker.models import OperatorTemplate
from broker.services.launch_templates import template_store
from tenants.services.errors import InvalidValue, ProblemError
from web.portal.actions import API_PAGE_SIZE, operator_api_call
from web.portal.launch_templates.template_form import TemplateForm, empty_form, form_of, parse_template_form
from web.portal.operators.list_specs import OperatorList
from web.portal.operators.operator_lists import csv_time, read_lists, wants_csv
from web.portal.operators.page_context import (
    SAFE_OR_POST,
    Confirmation,
    OperatorRequest,
    confirm_action,
    find_row,
    form_page,
    operator_page,
)


@dataclass(frozen=True, slots=True)
class OperatorTemplatePage:
    """The form of a new or saved template of the operators."""

    form: TemplateForm
    template: OperatorTemplate | None = None

    logins = None  # a template of the operators has a public image


def _template_cells(each: OperatorTemplate) -> tuple[object, ...]:
    return (
        *(each.pk, each.name, each.description, each.shape, each.image, csv_time(each.created_at)),
        *(each.created_by_label, csv_time(each.updated_at), each.updated_by_label),
    )


TEMPLATE_LIST = OperatorList(
    name="templates",
    heads="template name description shape image created_at created_by updated_at updated_by",
    cells=_template_cells,
    at="updated_at",
    search=("name", "description", "image", "pk"),
)


@operator_page("templates")
def list_templates(request: OperatorRequest) -> Any:
    """List the templates that every tenant can launch."""
    lists = read_lists(request, TEMPLATE_LIST)
    rows = OperatorTemplate.objects.order_by("name")
    if wants_csv(request):
        return lists.csv((TEMPLATE_LIST, lambda: rows))
    context = {
        "listing": lists.read(TEMPLATE_LIST, rows),
        "calls": [operator_api_call(_("Templates"), "ops/templates", limit=API_PAGE_SIZE)],
    }
    return render(request, "operators/launch_templates/templates.html", context)


@operator_page("templates.create", methods=SAFE_OR_POST)
def create_template(request: OperatorRequest) -> HttpResponse:
    """Save a new template for every tenant."""
    form = parse_template_form(request.POST) if request.method == "POST" else empty_form()

    def save() -> str:
        values = valid_values(form)
        made = template_store.create_operator_template(values=values, actor=request.actor, now=request.now)
        return _("{name} was saved and is on every launch page.").format(name=made.name)

    return template_form_page(request, OperatorTemplatePage(form), save)


@operator_page("templates.change", methods=SAFE_OR_POST)
def edit_template(request: OperatorRequest, pk: str) -> HttpResponse:
    """Change a template; leases keep what they were launched with."""
    template = find_template(pk)
    form = parse_template_form(request.POST) if request.method == "POST" else form_of(template)

    def save() -> str:
        values = valid_values(form)
        changed = template_store.change_operator_template(template, values, actor=request.actor, now=request.now)
        return _("{name} was changed.").format(name=changed.name)

    return template_form_page(request, OperatorTemplatePage(form, template), save)


@operator_page("templates.delete", methods=SAFE_OR_POST)
def delete_template(request: OperatorRequest, pk: str) -> HttpResponse:
    """Delete a template, after a confirmation page."""
    template = find_template(pk)

    def act(_why: str) -> str:
        template_store.delete_operator_template(template, actor=request.actor, now=request.now)
        return _("{name} was deleted.").format(name=template.name)

    step = Confirmation(
        title=_("Delete {name}?").format(name=template.name),
        verb=_("Delete template"),
        back=reverse("ops-templates"),
        lines=(_("New leases cannot choose it any more. Leases launched with it keep what it said."),),
        danger=True,
        needs_reason=False,
    )
    return confirm_action(request, step, act)


def template_form_page(request: OperatorRequest, page: OperatorTemplatePage, save: Callable[[], str]) -> HttpResponse:
    """Show a template's form; a refused one shows each fault beside its field."""

    def build(refusal: ProblemError | None) -> OperatorTemplatePage:
        if refusal is not None:
            page.form.show_problem(refusal)
        return page

    template = "operators/launch_templates/template.html"
    return form_page(request, template, build, save, back=reverse("ops-templates"))


def valid_values(form: TemplateForm) -> dict[str, object]:
    """Return a form's values; raise InvalidValue for lines that cannot be read."""
    values = form.values()
    for name, message in form.errors.items():
        raise InvalidValue(name, message, fix=_("Correct the line."))
    return values


def find_template(pk: str) -> OperatorTemplate:
    """Return a template of the operators, or raise ObjectNotFound."""
    fix = _("Choose one from the list of templates.")
    return find_row(OperatorTemplate.objects.all(), pk, _("This template"), fix=fix)
