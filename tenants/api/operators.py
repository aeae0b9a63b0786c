"""What every collection for operators stands on. A tenant is told that there is no such thing."""

from typing import Any, ClassVar

from django.conf import settings
from django.db.models import Model, QuerySet
from django.http import Http404
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import SessionAuthentication
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from ports import clock
from tenants.api.filters import Filter, Whitelist
from tenants.api.views import legible
from tenants.services import audit, walls
from tenants.services.actors import Actor
from tenants.services.operators import has_second_factor


class OperatorSession(SessionAuthentication):
    """The session of somebody who is signed in, of a tenant or of none."""

    def authenticate(self, request: Request) -> tuple[Any, Any] | None:
        user = getattr(request._request, "user", None)
        if user is None or not user.is_authenticated or not user.is_active:
            return None
        self.enforce_csrf(request)
        return user, None

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="gpubroker"'  # so that nobody signed in is told 401, not 403


class OperatorScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "tenants.api.operators.OperatorSession"
    name = "operator"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {
            "type": "apiKey",
            "in": "cookie",
            "name": "sessionid",
            "description": "An operator's session.",
        }


class IsOperator(BasePermission):
    """Let operators in, with their second factor where it is demanded; to others nothing is here."""

    def has_permission(self, request: Request, view: Any) -> bool:
        user = request.user
        if not getattr(user, "is_authenticated", False):
            return False
        if not user.is_staff or (settings.OPERATORS_NEED_MFA and not has_second_factor(user)):
            raise Http404
        return True


class FleetViewSet(ListModelMixin, RetrieveModelMixin, GenericViewSet[Any]):
    """A collection of what stands in the racks, whoever uses it; read-only unless it says otherwise."""

    authentication_classes = [OperatorSession]
    permission_classes = [IsOperator]
    filter_backends = [Whitelist]
    filters: ClassVar[dict[str, Filter]] = {}
    sorts: ClassVar[tuple[str, ...]] = ("id", "-id")
    search_in: ClassVar[tuple[str, ...]] = ()
    parameters: ClassVar[frozenset[str]] = frozenset()
    rows: ClassVar[type[Model]]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        legible(request)
        self.now = clock.now()

    def get_queryset(self) -> QuerySet[Any]:
        return self.rows._default_manager.all()


class AllTenants(FleetViewSet):
    """A collection of all tenants' rows: every look is in the audit trail, as a page's visit is."""

    visit: ClassVar[str]  # what a look is called in the trail, as in `in_operations` of a page

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if self.action not in (None, "metadata"):  # else the method is not one of ours, or asks for no rows
            page = request._request
            audit.record(
                f"ops.{self.visit}",
                actor=self.actor,
                now=self.now,
                method=page.method,
                path=page.get_full_path()[:500],
            )

    @property
    def actor(self) -> Actor:
        """The operator who asks."""
        user, label = self.request.user, getattr(self.request.user, "email", "")
        return Actor("staff", str(user.pk), label, getattr(self.request._request, "id", ""))

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Return a page of the rows."""
        with walls.as_staff():
            return super().list(request, *args, **kwargs)

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Return one row."""
        with walls.as_staff():
            return super().retrieve(request, *args, **kwargs)


def whole(items: Any) -> Response:
    """Answer a list that is complete, in the shape of a page."""
    return Response({"items": items, "next_cursor": None, "total_estimate": len(items)})
