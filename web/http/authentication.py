"""Authentication of API requests by token or portal session, and permission for an action."""

from typing import Any

from django.http import HttpRequest
from rest_framework import exceptions
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from ports import clock
from tenants.domain import credentials
from tenants.domain.roles import ACTIONS, RoleGrants
from tenants.models import Tenant
from tenants.services import authentication
from tenants.services.actors import Actor
from tenants.services.authentication import SESSION_TENANT_KEY, Visitor, refuse, require_not_suspended
from tenants.services.errors import ProblemError
from web.http.rate_limits import require_within_limits


class TenantRequest(Request):
    """Authenticated request, as views receive it."""

    tenant: Tenant
    actor: Actor
    roles: RoleGrants
    visitor: Visitor


def set_visitor(request: HttpRequest, visitor: Visitor) -> None:
    """Store the authenticated visitor on the request, unless they have sent too many.

    DRF's Request reads through to the same attributes.
    """
    request.visitor = visitor  # type: ignore[attr-defined]
    request.tenant = visitor.tenant  # type: ignore[attr-defined]
    request.actor = visitor.actor  # type: ignore[attr-defined]
    request.roles = visitor.grants  # type: ignore[attr-defined]
    require_within_limits(request, visitor)


class TokenAuthentication(BaseAuthentication):
    """Authentication by `Authorization: Bearer gpb_…`."""

    def authenticate(self, request: Request) -> tuple[Any, Any] | None:
        kind, _, text = request.headers.get("Authorization", "").partition(" ")
        if kind.lower() != "bearer":
            return None
        credential = credentials.parse_token(text.strip())
        visitor = credential and authentication.authenticate_token(
            credential, request_id=getattr(request._request, "id", ""), now=clock.now()
        )
        if not visitor:
            # The same message for every cause: unknown, expired, revoked, bearer gone.
            raise exceptions.AuthenticationFailed("This token is unknown, expired or revoked.")
        set_visitor(request._request, visitor)
        return visitor, visitor.token_id

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="gpubroker"'


class CsrfFailed(ProblemError):
    """A change by session came without the CSRF token, perhaps from another site."""

    code, status, title = "csrf-failed", 403, "The CSRF token is missing or wrong"


class NoTenant(ProblemError):
    """The signed-in user belongs to no tenant."""

    code, status, title = "no-tenant", 403, "You belong to no tenant"


class CheckedSessionAuthentication(SessionAuthentication):
    """Authentication by session; unsafe methods need the CSRF token."""

    def enforce_csrf(self, request: Request) -> None:
        try:
            super().enforce_csrf(request)
        except exceptions.PermissionDenied as error:
            raise CsrfFailed(
                f"{error.detail} A change by session needs the CSRF token.",
                fix="Send the value of the cookie csrftoken as header X-CSRFToken, or use an API token.",
            ) from None


class PortalAuthentication(CheckedSessionAuthentication):
    """Authentication by portal session, in the tenant that is open in the portal."""

    def authenticate(self, request: Request) -> tuple[Any, Any] | None:
        user = getattr(request._request, "user", None)
        if user is None or not user.is_authenticated or not user.is_active:
            return None
        self.enforce_csrf(request)
        visitor = authentication.authenticate_user(
            user.pk,
            user.email,
            wanted=request._request.session.get(SESSION_TENANT_KEY, ""),
            request_id=getattr(request._request, "id", ""),
        )
        if visitor is None:
            raise NoTenant("You are not a member of a tenant.", fix="Create a tenant, or accept an invitation.")
        set_visitor(request._request, visitor)
        return visitor, None


class TenantPermission(BasePermission):
    """Refuse unless the visitor may perform the view's action on some project.

    The view names that action in `actions_needed`. Which projects it then covers is decided by
    `TenantViewSet.visible` (reading) and `allow` (changing).
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        visitor = getattr(request, "visitor", None)
        if not isinstance(visitor, Visitor):
            return False
        if request.method not in SAFE_METHODS and not getattr(view, "changes_nothing", False):
            require_not_suspended(visitor.tenant)
        needed = action_needed_by(view)
        if needed is None:
            return True  # no such method here: DRF answers 405
        if not visitor.grants.anywhere(needed):
            refuse(needed, visitor.grants)
        return True


class AnyVisitor(BasePermission):
    """Permission of every authenticated visitor, whatever their role and scopes."""

    def has_permission(self, request: Request, view: Any) -> bool:
        return isinstance(getattr(request, "visitor", None), Visitor)


def action_needed_by(view: Any) -> str | None:
    """Return the action the view's current method needs; None without such a method."""
    name = getattr(view, "action", None)
    if name is None or name == "metadata":
        return None
    needed: str = view.actions_needed[name]  # a KeyError is a bug of the view; tests find it
    if needed not in ACTIONS:
        raise LookupError(f"{type(view).__name__}.{name} needs {needed!r}, which no role has")
    return needed
