"""API of tokens, and of the credential's own identity."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.mixins import ListModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from tenants.domain.roles import Role
from tenants.models import ApiToken, ServiceAccount
from tenants.services import members, tokens
from tenants.services.authentication import require_scopes
from tenants.services.errors import ObjectNotFound
from web.api.base_views import TenantViewSet, needs, validated_body
from web.api.tenant_serializers import CreatedTokenOut, IdentityOut, TokenCreate, TokenOut
from web.http.filters import QueryFilter
from web.http.idempotency import idempotent


class TokenViewSet(ListModelMixin, TenantViewSet):
    """Your tokens; owners and admins of the tenant see everybody's."""

    serializer_class = TokenOut
    rows = ApiToken.objects.all()
    sorts = ("-id",)
    filters = {
        "revoked": QueryFilter("revoked_at__isnull", "flag_not"),
        "service_account": QueryFilter("service_account_id"),
        "created_by": QueryFilter("made_by"),
    }
    search_in = ("name", "prefix")
    actions_needed = needs("tokens.read", "list", "retrieve") | needs("tokens.write", "create", "destroy")

    def get_queryset(self) -> Any:
        rows = super().get_queryset()
        if within := self.request.roles.within:  # so that it cannot revoke a token with wider access
            rows = rows.filter(project__path__contains=[within[-1]])
        if self.request.roles.may("tokens.all"):
            return rows
        actor = self.request.actor
        return rows.filter(**{f"{actor.kind}_id": actor.id})

    def retrieve(self, request: Request, pk: str) -> Response:
        """Return one token, without its secret."""
        return Response(TokenOut(self.get_object()).data)

    @extend_schema(request=TokenCreate, responses={201: CreatedTokenOut})
    @idempotent(hide=("token",))
    def create(self, request: Request) -> Response:
        """Create a token for yourself, or for a service account whose role you may grant."""
        token, text = self.issue(validated_body(TokenCreate, request))
        return Response({**TokenOut(token).data, "token": text}, status=201)

    def destroy(self, request: Request, pk: str) -> Response:
        """Revoke a token; it is invalid at once."""
        tokens.revoke(self.get_object(), **self.by)
        return Response(status=204)

    def issue(self, wanted: dict[str, Any]) -> tuple[ApiToken, str]:
        """Issue the token that a body asks for; return it and its secret."""
        project = wanted["project"] and self.project_for(wanted["project"])
        tokens.require_within(self.request.roles, wanted["scopes"], project)
        return tokens.issue(
            tenant=self.request.tenant,
            name=wanted["name"],
            scopes=wanted["scopes"],
            expires_at=wanted["expires_at"],
            project=project,
            **self._bearer(wanted["service_account"]),
            **self.by,
        )

    def _bearer(self, account_id: str | None) -> dict[str, Any]:
        actor = self.request.actor
        if account_id is None and actor.kind == "user":
            return {"user_id": actor.id}
        account = ServiceAccount.objects.filter(
            tenant=self.request.tenant, pk=account_id or actor.id, closed_at=None
        ).first()
        path = members.node_path(account.project) if account else []
        if account is None or account.pk != actor.id:
            require_scopes(["members.read"], self.request.roles)
        if account is None or not (account.pk == actor.id or self.request.roles.may("members.read", path)):
            raise ObjectNotFound("The service account was not found.", fix="List service-accounts.")
        if account.pk != actor.id:
            members.require_may_give(self.request.roles, Role(account.role), account.project)
        return {"service_account": account}


class IdentityViewSet(TenantViewSet):
    """Identity of the credential of this request."""

    serializer_class = IdentityOut
    pagination_class = None
    filter_backends = []
    actions_needed = needs("tenant.read", "retrieve")

    @extend_schema(responses=IdentityOut)
    def retrieve(self, request: Request) -> Response:
        """Return who you are here and what you may do."""
        roles = self.request.roles
        body = {
            "id": self.request.actor.id,
            "kind": self.request.actor.kind,
            "label": self.request.actor.label,
            "tenant": self.request.tenant.pk,
            "roles": [{"role": g.role, "project": g.path[-1] if g.path else None} for g in roles.grants],
            "scopes": None if roles.scopes is None else sorted(roles.scopes),
        }
        return Response(IdentityOut(body).data)
