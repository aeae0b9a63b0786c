"""Base viewsets of the operators' API.

For anybody else these addresses do not exist (404).
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import wraps
from typing import Any, ClassVar

from django.conf import settings
from django.db.models import Model, QuerySet
from django.http import Http404
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import extend_schema
from rest_framework import exceptions, serializers
from rest_framework.authentication import BaseAuthentication
from rest_framework.decorators import action
from rest_framework.fields import empty
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from ports import clock
from tenants.domain import credentials
from tenants.domain.operator_scopes import operator_scope
from tenants.models import OperatorToken, Tenant
from tenants.services import audit, operator_tokens, rls
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue, ObjectNotFound
from tenants.services.operators import has_second_factor
from web.api.base_views import OPTIONS, RowViewSet, validated_body
from web.api.serializer_fields import StrictSerializer
from web.http.authentication import CheckedSessionAuthentication
from web.http.filters import QueryFilter
from web.http.idempotency import idempotent
from web.http.rate_limits import count_for


class OperatorTokenAuthentication(BaseAuthentication):
    """Authentication by an operator's token, `Authorization: Bearer gpb_ops_…`."""

    def authenticate(self, request: Request) -> tuple[Any, Any] | None:
        kind, _, text = request.headers.get("Authorization", "").partition(" ")
        if kind.lower() != "bearer":
            return None
        credential = credentials.parse_token(text.strip())
        token = credential and operator_tokens.authenticate_operator_token(credential, now=clock.now())
        if not token:
            raise exceptions.AuthenticationFailed("This is no operator's token, or it has expired or was revoked.")
        count_for(request._request, token_id=token.pk)
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="gpubroker"'  # so that an anonymous request gets 401, not 403


class OperatorTokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "web.api.operators.base_views.OperatorTokenAuthentication"
    name = "operator_token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "`gpb_ops_…`, created on the operators' Tokens page.",
        }


class OperatorAuthentication(CheckedSessionAuthentication):
    """Authentication by session, whether or not the user belongs to a tenant."""

    def authenticate(self, request: Request) -> tuple[Any, Any] | None:
        user = getattr(request._request, "user", None)
        if user is None or not user.is_authenticated or not user.is_active:
            return None
        self.enforce_csrf(request)
        return user, None

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="gpubroker"'  # so that an anonymous request gets 401, not 403


class OperatorScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "web.api.operators.base_views.OperatorAuthentication"
    name = "operator"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {"type": "apiKey", "in": "cookie", "name": "sessionid", "description": "An operator's session."}


class IsOperator(BasePermission):
    """Permission of operators, with their second factor where required; others get 404."""

    def has_permission(self, request: Request, view: Any) -> bool:
        user = request.user
        if not getattr(user, "is_authenticated", False):
            return False
        if not user.is_staff or (settings.OPERATORS_REQUIRE_MFA and not has_second_factor(user)):
            raise Http404
        if isinstance(request.auth, OperatorToken) and view.action not in view.without_scope:
            changes = request.method not in SAFE_METHODS
            operator_tokens.require_operator_scope(request.auth, operator_scope(view.area, changes=changes))
        return True


class OperatorViewSet(ListModelMixin, RetrieveModelMixin, RowViewSet):
    """Collection of inventory rows for operators; read-only by default."""

    authentication_classes = [OperatorTokenAuthentication, OperatorAuthentication]
    permission_classes = [IsOperator]
    area: ClassVar[str]  # of the scope that a token needs
    without_scope: ClassVar[frozenset[str]] = frozenset()  # actions for which it needs none

    @property
    def by(self) -> dict[str, Any]:
        """Return which operator acts and when, as services take it."""
        user, label, token = self.request.user, getattr(self.request.user, "email", ""), self.request.auth
        token_id = token.pk if isinstance(token, OperatorToken) else ""
        actor = Actor("staff", str(user.pk), label, getattr(self.request._request, "id", ""), token_id)
        return {"actor": actor, "now": self.now}


class CrossTenantViewSet(OperatorViewSet):
    """Collection of all tenants' rows for operators; every request is audited."""

    audit_action: ClassVar[str] = ""  # audited as `ops.<audit_action>`, as in `operator_required` of a page

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if self.action not in (None, OPTIONS):  # else the method does not exist, or reads no rows
            page, token = request._request, self.by["actor"].token
            used = {"token": token} if token else {}
            path = page.get_full_path()[:500]
            action_name = getattr(getattr(self, self.action), "audit_action", "") or self.audit_action
            audit.record(f"ops.{action_name}", method=page.method, path=path, **used, **self.by)

    def read_scope(self) -> AbstractContextManager[None]:
        return rls.staff_scope()

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Return a page of the rows."""
        with self.read_scope():
            return super().list(request, *args, **kwargs)

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Return one row."""
        with self.read_scope():
            return super().retrieve(request, *args, **kwargs)


class NamedOut(serializers.Serializer[Any]):
    """Id and name of a row."""

    id = serializers.CharField(source="pk")
    name = serializers.CharField()


class ReasonIn(StrictSerializer):
    reason = serializers.CharField(max_length=500, help_text="Visible to the tenant and other operators.")


class TenantNamed(serializers.ModelSerializer[Any]):
    """Base of a row as operators see it: tenant, own fields, then `more`."""

    tenant = NamedOut()
    more: ClassVar[tuple[str, ...]] = ()

    def get_field_names(self, declared_fields: Any, info: Any) -> list[str]:
        return ["tenant", *super().get_field_names(declared_fields, info), *self.more]


TENANT_FILTER = {"tenant": QueryFilter("tenant_id")}  # operators' lists are filtered by tenant besides
CREATE, CHANGE, DELETE = "create", "partial_update", "destroy"  # routed by their names


# Services and forms of pages name some fields otherwise.
BODY_NAMES = {
    "price": ("price_per_hour",),
    "rate": ("percent",),
    "payment": ("payment_terms",),
    "at": ("until",),
    "since": ("since_day",),
    "until": ("expires_at",),
    "most": ("max_redemptions",),
}


@dataclass(frozen=True)
class OperatorAct:
    """An act of operators, decorating the method that calls the service.

    `create` is a POST of the collection, `partial_update` a PATCH and `destroy` a DELETE of a row; any other name is a
    POST below a row. The method gets the row (none of a whole collection) and the valid body, and returns the row
    that results. Rows are read with staff access, and the service acts without it.
    """

    body: type[BaseSerializer[Any]] | None = None
    answer: Any = empty  # serializer of the result, if the view's does not fit
    rows: QuerySet[Any] | None = None  # of the result, if that is not a row of the view
    find: Callable[[str], Any] | None = None  # returns the row of an id, if the view's own way does not fit
    description: str | None = None  # else the docstring
    audit_action: str = ""  # else that of the view
    creates: bool = False  # an act below a row that makes another row

    def __call__(self, act: Callable[..., Model | None]) -> Callable[..., Response]:
        @wraps(act)
        def respond(view: CrossTenantViewSet, request: Request, pk: str | None = None) -> Response:
            with view.read_scope():
                about = () if pk is None else (self.find(pk) if self.find else view.find_row(),)
            body = (validated_body(self.body, request, partial=act.__name__ == CHANGE),) if self.body else ()
            try:
                done = act(view, *about, *body)
            except InvalidValue as error:
                raise self._named_by_body(error) from error
            if done is None:
                return Response(status=204)
            with view.read_scope():
                shown = (view.get_queryset() if self.rows is None else self.rows).get(pk=done.pk)
                if self.answer is not empty:
                    return Response(self.answer(shown).data, status=status)
                return Response(view.get_serializer(view.prepare([shown])[0]).data, status=status)

        respond.audit_action = self.audit_action  # type: ignore[attr-defined]
        name = act.__name__
        status = 201 if name == CREATE or self.creates else 200
        routed: Callable[..., Response] = respond if name in (CHANGE, DELETE) else idempotent()(respond)
        routed = routed if name in (CREATE, CHANGE, DELETE) else self._route(routed)
        return extend_schema(request=self.body, responses=self._answers(name), description=self.description)(routed)

    def _named_by_body(self, error: InvalidValue) -> InvalidValue:
        """Return the error with the body's name of its field."""
        fields: dict[str, Any] = getattr(self.body(), "fields", {}) if self.body else {}
        name = next((each for each in BODY_NAMES.get(error.field, ()) if each in fields), "")
        if error.field in fields or not name:
            return error
        return InvalidValue(name, error.detail, fix=error.fix)

    def _answers(self, name: str) -> Any:
        if name == DELETE:
            return {204: None}
        return {201: self.answer} if self.creates else self.answer

    def _route(self, respond: Callable[..., Response]) -> Callable[..., Response]:
        """Route an act below its row: `mark_failed` at `<row>/mark-failed`."""
        options = {"audit_action": self.audit_action} if self.audit_action else {}
        return action(detail=True, methods=["post"], url_path=respond.__name__.replace("_", "-"), **options)(respond)


def require_field(body: dict[str, Any], name: str, *, fix: str = "") -> Any:
    """Return a field that a change must name, or raise InvalidValue."""
    if name not in body:
        raise InvalidValue(name, "The field is required for this change.", fix=fix or f"Send {name}.")
    return body[name]


def tenant_or_missing(pk: str) -> Tenant:
    """Return the tenant that a body names, or raise ObjectNotFound."""
    with rls.staff_scope():
        tenant = Tenant.objects.filter(pk=pk).first()
    if tenant is None:
        raise ObjectNotFound(f"Tenant {pk!r} was not found.", fix="Copy its ID from one of its leases or invoices.")
    return tenant
