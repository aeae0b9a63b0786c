"""The API's two credentials: a bearer token, or the portal's session."""

from typing import Any

from django.http import HttpRequest
from rest_framework import exceptions
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.request import Request

from ports import clock
from tenants.domain import credentials
from tenants.domain.roles import Grants
from tenants.models import Tenant
from tenants.services import doors
from tenants.services.actors import Actor
from tenants.services.doors import SESSION_TENANT, Visitor


class TenantRequest(Request):
    """What a view gets: the request of somebody who was let in."""

    tenant: Tenant
    actor: Actor
    roles: Grants
    visitor: Visitor


def let_in(request: HttpRequest, visitor: Visitor) -> None:
    """Write on the request who it is; DRF's Request reads through to the same attributes."""
    request.visitor = visitor  # type: ignore[attr-defined]
    request.tenant = visitor.tenant  # type: ignore[attr-defined]
    request.actor = visitor.actor  # type: ignore[attr-defined]
    request.roles = visitor.grants  # type: ignore[attr-defined]


class TokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer gpb_…`"""

    def authenticate(self, request: Request) -> tuple[Any, Any] | None:
        kind, _, text = request.headers.get("Authorization", "").partition(" ")
        if kind.lower() != "bearer":
            return None
        credential = credentials.read(text.strip())
        visitor = credential and doors.by_token(
            credential, request_id=getattr(request._request, "id", ""), now=clock.now()
        )
        if not visitor:
            # One sentence for every cause: unknown, expired, revoked, bearer gone.
            raise exceptions.AuthenticationFailed("This token is unknown, expired or revoked.")
        let_in(request._request, visitor)
        return visitor, visitor.token_id

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="gpubroker"'


class PortalAuthentication(SessionAuthentication):
    """The portal's session; what changes something must carry the CSRF token."""

    def authenticate(self, request: Request) -> tuple[Any, Any] | None:
        user = getattr(request._request, "user", None)
        if user is None or not user.is_authenticated or not user.is_active:
            return None
        self.enforce_csrf(request)
        visitor = doors.by_user(
            user.pk,
            user.email,
            wanted=request._request.session.get(SESSION_TENANT, ""),
            request_id=getattr(request._request, "id", ""),
        )
        if visitor is None:
            raise exceptions.PermissionDenied("You belong to no tenant yet.")
        let_in(request._request, visitor)
        return visitor, None
