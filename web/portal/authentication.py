"""Authentication decorators of portal pages."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import wraps
from typing import Any

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpResponseBase
from django.shortcuts import redirect
from django.utils import timezone

from ports import clock
from tenants.models import Project
from tenants.services import audit, authentication, rls
from tenants.services.actors import Actor
from tenants.services.authentication import SESSION_TENANT_KEY as SESSION_TENANT_KEY
from tenants.services.authentication import Visitor, refuse, require_not_suspended
from tenants.services.operators import has_second_factor as has_second_factor
from web.http.middleware import set_rejection_reason
from web.http.rate_limits import require_within_limits
from web.portal.action_addresses import allow_methods

PortalView = Callable[..., HttpResponseBase]
# Methods of pages. Not every page answers HEAD.
GET, POST, SAFE = ("GET",), ("POST",), ("GET", "HEAD")
GET_OR_POST, SAFE_OR_POST = ("GET", "POST"), ("GET", "HEAD", "POST")
SAFE_HTTP_METHODS = ("GET", "HEAD", "OPTIONS")
SESSION_PROJECT = "project"
SESSION_NO_TENANT = "create-tenant"  # an operator without a tenant, for the page layout
AUDIT_POLL_INTERVAL = timedelta(minutes=1)


def tenant_required(
    action: str = "tenant.read", *, methods: Sequence[str] = GET, changes_nothing: bool = False
) -> Callable[[PortalView], PortalView]:
    """Decorate a page: require an action somewhere in the open tenant.

    Sets `request.tenant`, `.project` (where the visitor works now), `.actor` and `.roles`, and renders
    in the tenant's time zone. A form that changes nothing (`changes_nothing`) may be sent in a suspended
    tenant too.
    """

    def wrap(page: PortalView) -> PortalView:
        @allow_methods(methods)
        @wraps(page)
        def inside(request: Any, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if not request.user.is_authenticated:
                return redirect_to_login(request.get_full_path())
            if not enter_tenant_of_session(request):
                return redirect("create-tenant")
            if request.method not in SAFE_HTTP_METHODS and not changes_nothing:
                require_not_suspended(request.tenant)
            if not request.roles.anywhere(action):
                refuse(action, request.roles)
            with timezone.override(request.tenant.time_zone):
                return page(request, *args, **kwargs)

        inside.action = action  # type: ignore[attr-defined]  # the matrix reads it
        return inside

    return wrap


def sign_in_required(page: PortalView) -> PortalView:
    """Decorate a page: require a signed-in user, outside every tenant."""

    @wraps(page)
    def inside(request: Any, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not request.user.is_authenticated:
            return redirect_to_login(request.get_full_path())
        return page(request, *args, **kwargs)

    return inside


def enter_tenant_of_session(request: Any) -> bool:
    """Enter the session's open tenant; False when the visitor belongs to none."""
    visitor = authentication.authenticate_user(
        request.user.pk,
        request.user.email,
        wanted=request.session.get(SESSION_TENANT_KEY, ""),
        request_id=getattr(request, "id", ""),
    )
    if visitor is None:
        return False
    request.session.pop(SESSION_NO_TENANT, None)  # may have joined a tenant since
    request.visitor, request.tenant = visitor, visitor.tenant
    request.actor, request.roles = visitor.actor, visitor.grants
    require_within_limits(request, visitor)
    projects = visible_projects(visitor)
    chosen = request.session.get(SESSION_PROJECT, "")
    request.projects = projects
    request.project = next((p for p in projects if p.pk == chosen), projects[0] if projects else None)
    return True


def visible_projects(visitor: Visitor) -> list[Project]:
    """Return the open projects the visitor may see, parents before children, by name."""
    rows = Project.objects.filter(tenant=visitor.tenant).open()
    reach = visitor.grants.projects("projects.read")
    if reach is not None:
        rows = rows.filter(path__overlap=sorted(reach))
    seen = list(rows)
    names = {p.pk: p.name for p in seen}
    return sorted(seen, key=lambda p: ([names.get(i, "") for i in p.path], p.pk))


def operator_required(
    action: str, *, methods: Sequence[str] = GET, repeats: bool = False
) -> Callable[[PortalView], PortalView]:
    """Decorate a page: operators only, reading across tenants; every visit is audited.

    Anybody else gets 404. A change enters the tenant with `rls.tenant_scope` in a service. A page that
    polls (`repeats`) is audited once a minute.
    """

    def wrap(page: PortalView) -> PortalView:
        @allow_methods(methods)
        @wraps(page)
        def inside(request: Any, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if not request.user.is_authenticated:
                return redirect_to_login(request.get_full_path())
            if not request.user.is_staff:
                raise Http404
            if settings.OPERATORS_REQUIRE_MFA and not has_second_factor(request.user):
                set_rejection_reason(request, "An operator needs a second factor.")
                return redirect("mfa_index")
            request.actor = Actor("staff", request.user.pk, request.user.email, getattr(request, "id", ""))
            if not (repeats and _audited_recently(f"ops.{action}", request.actor)):
                audit.record(
                    f"ops.{action}",
                    actor=request.actor,
                    now=clock.now(),
                    method=request.method,
                    path=request.get_full_path()[:500],
                )
            if request.method not in SAFE_HTTP_METHODS:
                return page(request, *args, **kwargs)
            with rls.staff_scope():
                return page(request, *args, **kwargs)

        inside.action = f"ops.{action}"  # type: ignore[attr-defined]
        return inside

    return wrap


def _audited_recently(action: str, actor: Actor) -> bool:
    with rls.staff_scope():
        return audit.was_recorded(action, actor=actor, since=clock.now() - AUDIT_POLL_INTERVAL)
