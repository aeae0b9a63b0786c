"""Decorators of portal pages: who may come in, and as whom."""

from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Any

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.utils import timezone

from ports import clock
from tenants.domain.roles import Grants
from tenants.models import Project, Tenant
from tenants.portal.refused import because
from tenants.services import audit, doors, walls
from tenants.services.actors import Actor
from tenants.services.doors import SESSION_TENANT as SESSION_TENANT
from tenants.services.doors import Visitor
from tenants.services.operators import has_second_factor as has_second_factor
from tenants.services.permissions import not_suspended, refuse

Page = Callable[..., HttpResponseBase]
SAFE = ("GET", "HEAD", "OPTIONS")
SESSION_PROJECT = "project"
SESSION_NO_TENANT = "no-tenant"  # an operator who belongs to none, for the frame of the pages
NOTED_EVERY = timedelta(minutes=1)


class TenantHttpRequest(HttpRequest):
    """What a portal view gets."""

    tenant: Tenant
    project: Project
    actor: Actor
    roles: Grants
    visitor: Visitor


def in_tenant(action: str = "tenant.read", *, asks_only: bool = False) -> Callable[[Page], Page]:
    """Let a page be seen by whoever has this action somewhere in the tenant that is open.

    Sets `request.tenant`, `.project` (where the visitor works now), `.actor` and `.roles`; the page is
    written in the tenant's own time zone. A form that changes nothing (`asks_only`) may be sent in a suspended
    tenant too.
    """

    def wrap(page: Page) -> Page:
        @wraps(page)
        def inside(request: Any, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if not request.user.is_authenticated:
                return redirect_to_login(request.get_full_path())
            if not enter(request):
                return redirect("no-tenant")
            if request.method not in SAFE and not asks_only:
                not_suspended(request.tenant)
            if not request.roles.anywhere(action):
                refuse(action, request.roles)
            with timezone.override(request.tenant.time_zone):
                return page(request, *args, **kwargs)

        inside.action = action  # type: ignore[attr-defined]  # the matrix reads it
        return inside

    return wrap


def signed_in(page: Page) -> Page:
    """Let a page be seen by whoever is signed in, outside every tenant."""

    @wraps(page)
    def inside(request: Any, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not request.user.is_authenticated:
            return redirect_to_login(request.get_full_path())
        return page(request, *args, **kwargs)

    return inside


def enter(request: Any) -> bool:
    """Enter the tenant the session has open; False when the visitor belongs to none."""
    visitor = doors.by_user(
        request.user.pk,
        request.user.email,
        wanted=request.session.get(SESSION_TENANT, ""),
        request_id=getattr(request, "id", ""),
    )
    if visitor is None:
        return False
    request.session.pop(
        SESSION_NO_TENANT, None
    )  # whoever belonged to none when they came may belong to one since
    request.visitor, request.tenant = visitor, visitor.tenant
    request.actor, request.roles = visitor.actor, visitor.grants
    projects = seen_projects(visitor)
    chosen = request.session.get(SESSION_PROJECT, "")
    request.projects = projects
    request.project = next((p for p in projects if p.pk == chosen), projects[0] if projects else None)
    return True


def seen_projects(visitor: Visitor) -> list[Project]:
    """Return the open projects this visitor may see, parents before children, in order of names."""
    rows = Project.objects.for_tenant(visitor.tenant).open()
    reach = visitor.grants.projects("projects.read")
    if reach is not None:
        rows = rows.filter(path__overlap=sorted(reach))
    seen = list(rows)
    names = {p.pk: p.name for p in seen}
    return sorted(seen, key=lambda p: ([names.get(i, "") for i in p.path], p.pk))


def in_operations(action: str, *, repeats: bool = False) -> Callable[[Page], Page]:
    """Let a page be seen by operators only, reading across tenants; every visit is audited.

    Anybody else is told there is no such page. A change goes through `walls.as_tenant` in a service.
    A page that asks again by itself while somebody looks (`repeats`) is noted once a minute.
    """

    def wrap(page: Page) -> Page:
        @wraps(page)
        def inside(request: Any, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if not request.user.is_authenticated:
                return redirect_to_login(request.get_full_path())
            if not request.user.is_staff:
                raise Http404
            if settings.OPERATORS_NEED_MFA and not has_second_factor(request.user):
                because(request, "An operator needs a second factor.")
                return redirect("mfa_index")
            request.actor = Actor("staff", request.user.pk, request.user.email, getattr(request, "id", ""))
            if not (repeats and _noted(f"ops.{action}", request.actor)):
                audit.record(
                    f"ops.{action}",
                    actor=request.actor,
                    now=clock.now(),
                    method=request.method,
                    path=request.get_full_path()[:500],
                )
            if request.method not in SAFE:
                return page(request, *args, **kwargs)
            with walls.as_staff():
                return page(request, *args, **kwargs)

        inside.action = f"ops.{action}"  # type: ignore[attr-defined]
        return inside

    return wrap


def _noted(action: str, actor: Actor) -> bool:
    with walls.as_staff():
        return audit.noted(action, actor=actor, since=clock.now() - NOTED_EVERY)
