"""Secret pages: names and versions; values are entered and never shown."""

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from broker.domain.workloads.secret_variables import secret_name_fault
from broker.models import Lease, Secret, SecretKind
from broker.services.secrets import registry_secrets, secret_store
from ports import ids
from tenants.services import idempotency
from tenants.services.errors import ObjectNotFound, ProblemError
from web.portal import api_examples
from web.portal.actions import ListPage, list_page
from web.portal.page_context import GET_OR_POST, PageRequest, Scope, may_in_project, require_in_project, tenant_page

API_PAGE_SIZE = 500


@dataclass(frozen=True, slots=True)
class SecretRow:
    """One secret of the list, with the leases that use it."""

    secret: Secret
    leases: list[Lease]
    may_write: bool


@dataclass(frozen=True, slots=True)
class SecretPage:
    """The secrets of a project, with the form that creates one."""

    listed: ListPage  # of SecretRow
    name: str
    sent: QueryDict  # the sent form; the page repeats no value
    errors: dict[str, str]
    already_created: bool
    idempotency_key: str
    may_write: bool
    call: str

    @property
    def is_login(self) -> bool:
        return self.sent.get("kind") == SecretKind.REGISTRY

    @property
    def variable_errors(self) -> dict[str, str]:
        return {} if self.is_login else self.errors

    @property
    def login_errors(self) -> dict[str, str]:
        return self.errors if self.is_login else {}


@tenant_page("secrets.read", methods=GET_OR_POST)
def list_secrets(request: PageRequest) -> HttpResponse:
    """List the secrets of the open project; a POST creates one."""
    errors, already_created = dict[str, str](), False
    if request.method == "POST":
        require_in_project(request, "secrets.write", request.project)
        try:
            return create_secret(request)
        except idempotency.IdempotencyKeyReused:  # somebody went back and changed the form, which still has its old key
            already_created = True
        except ProblemError as refusal:
            errors = field_errors(refusal)
    page = build_secret_page(request, errors, already_created=already_created)
    return no_store(
        render(request, "secrets/secrets.html", {"page": page}, status=409 if request.method == "POST" else 200)
    )


def build_secret_page(request: PageRequest, errors: dict[str, str], *, already_created: bool) -> SecretPage:
    """Read the secrets of the open project and the leases that use them."""
    found = visible_secrets(request.scope)
    listed = list_page(request, found, count=found.count())
    using = leases_by_secret(request.scope)
    name = request.POST.get("name", "").strip()
    return SecretPage(
        listed=replace(
            listed,
            rows=[
                SecretRow(each, using[each.pk], request.roles.may("secrets.write", each.project.path))
                for each in listed.rows
            ],
        ),
        sent=request.POST,
        name="" if secret_name_fault(name) else name,  # an invalid name may be a value in the wrong field
        errors=errors,
        already_created=already_created,
        idempotency_key=(not already_created and request.POST.get("key")) or ids.random_token(),
        may_write=may_in_project(request, "secrets.write"),
        call=api_examples.curl_list("/secrets", request.scope, limit=API_PAGE_SIZE),
    )


def create_secret(request: PageRequest) -> HttpResponse:
    """Create a secret once, however often the form is sent."""
    is_login = request.POST.get("kind") == SecretKind.REGISTRY
    wanted = entered_login(request) if is_login else {"value": entered_value(request)}
    wanted["name"] = request.POST.get("name", "")
    if is_login:
        wanted["registry"] = request.POST.get("registry", "")
    body = idempotency.blind_fields(wanted, ("value", "password"))
    keyed = idempotency.KeyedRequest(
        tenant_id=request.tenant.pk,
        bearer=request.actor.id,
        method="POST",
        path=request.path,
        key=request.POST.get("key", "")[:255] or ids.random_token(),
        digest=idempotency.request_digest(body),
    )
    if idempotency.find_record(keyed):
        return redirect("secrets")
    create = registry_secrets.create_registry_secret if is_login else secret_store.create_secret
    made = create(project=request.project, **wanted, actor=request.actor, now=request.now)
    idempotency.store_record(keyed, status=302, headers={"Location": request.path}, body="", now=request.now)
    messages.success(
        request, _("{name} was saved. Choose it when you launch; it is not shown again.").format(name=made.name)
    )
    return redirect("secrets")


@tenant_page("secrets.read", methods=GET_OR_POST)
def replace_secret(request: PageRequest, pk: str) -> HttpResponse:
    """Replace a secret's value or login with the entered one."""
    secret, error = find_secret(request, pk), ""
    require_in_project(request, "secrets.write", secret.project)
    if request.method == "POST":
        try:
            if secret.kind == SecretKind.REGISTRY:
                login = entered_login(request)
                registry_secrets.replace_login(secret, **login, actor=request.actor, now=request.now)
            else:
                secret_store.replace_value(secret, entered_value(request), actor=request.actor, now=request.now)
        except ProblemError as refusal:
            error = f"{refusal.detail} {refusal.fix.text}"
        else:
            messages.success(request, _("The value of {name} was replaced.").format(name=secret.name))
            return redirect("secrets")
    using = leases_by_secret(request.scope)[secret.pk]
    shown = {"secret": secret, "leases": using, "error": error}
    return no_store(render(request, "secrets/replace.html", shown, status=400 if error else 200))


@tenant_page("secrets.read", methods=GET_OR_POST)
def delete_secret(request: PageRequest, pk: str) -> HttpResponse:
    """Delete a secret, after a confirmation page."""
    secret, error = find_secret(request, pk), ""
    require_in_project(request, "secrets.write", secret.project)
    if request.method == "POST":
        try:
            secret_store.delete_secret(secret, actor=request.actor, now=request.now)
        except ProblemError as refusal:
            error = f"{refusal.detail} {refusal.fix.text}"
        else:
            messages.success(request, _("{name} was deleted.").format(name=secret.name))
            return redirect("secrets")
    shown = {"secret": secret, "holder": next(secret_store.leases_using(secret), None), "error": error}
    return render(request, "secrets/delete.html", shown, status=409 if error else 200)


def find_secret(request: PageRequest, pk: str) -> Secret:
    """Return a secret, or raise ObjectNotFound if the visitor may not see it."""
    secret = Secret.objects.filter(tenant=request.tenant, pk=pk).select_related("project").first()
    if secret is None or not request.roles.may("secrets.read", secret.project.path):
        raise ObjectNotFound(_("This secret does not exist."), fix=_("Choose one from the list of secrets."))
    return secret


def visible_secrets(scope: Scope) -> QuerySet[Secret]:
    """Return the open project's secrets and those below."""
    rows = Secret.objects.filter(tenant=scope.tenant)
    if not scope.whole:
        rows = rows.filter(project__in=scope.projects().values("pk"))
    return rows.select_related("project").order_by("project__name", "name")


def leases_by_secret(scope: Scope) -> dict[str, list[Lease]]:
    """Return the leases in scope that are not over, by the secrets they use."""
    using = defaultdict[str, list[Lease]](list)
    for lease in scope.leases().live().exclude(secrets={}, pull_secret={}).order_by("name"):
        for secret_id in lease.used_secret_ids:
            using[secret_id].append(lease)
    return using


def entered_value(request: PageRequest) -> str:
    """Return the entered value with line breaks as in files, none after a single line."""
    value = request.POST.get("value", "").replace("\r\n", "\n")
    return value.rstrip("\n") if "\n" not in value.rstrip("\n") else value


def entered_login(request: PageRequest) -> dict[str, str]:
    """Return the entered user name and password of a registry."""
    return {"username": request.POST.get("username", ""), "password": request.POST.get("password", "")}


def field_errors(refusal: ProblemError) -> dict[str, str]:
    """Return the error of a refused secret beside its field."""
    field: Any = getattr(refusal, "field", "name")
    return {field: f"{refusal.detail} {refusal.fix.text}"}


def no_store(response: HttpResponse) -> HttpResponse:
    """Keep a page with a secret's form out of the browser's cache."""
    response["Cache-Control"] = "no-store"
    return response
