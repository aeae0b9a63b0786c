"""API tokens, and who one is."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.mixins import ListModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from tenants.api.filters import Filter
from tenants.api.idempotency import idempotent
from tenants.api.serializers import MeOut, TokenMade, TokenOut, TokenWanted
from tenants.api.views import TenantViewSet, shape
from tenants.domain.roles import Role
from tenants.models import ApiToken, ServiceAccount
from tenants.services import members, tokens
from tenants.services.refusals import Missing


class Tokens(ListModelMixin, TenantViewSet):
    """Your tokens; those who lead the tenant see everybody's."""

    serializer_class = TokenOut
    filters = {
        "revoked": Filter("revoked_at__isnull", "flag_not"),
        "service_account": Filter("service_account_id"),
        "made_by": Filter("made_by"),
    }
    search_in = ("name", "prefix")
    actions_needed = {
        "list": "tokens.read",
        "retrieve": "tokens.read",
        "create": "tokens.write",
        "destroy": "tokens.write",
    }

    def get_queryset(self) -> Any:
        rows = self.visible(ApiToken.objects.all())
        if within := self.request.roles.within:  # so that it cannot end what reaches further than itself
            rows = rows.filter(project__path__contains=[within[-1]])
        if self.request.roles.may("tokens.all"):
            return rows
        actor = self.request.actor
        return rows.filter(**{f"{actor.kind}_id": actor.id})

    def retrieve(self, request: Request, pk: str) -> Response:
        """Return one token, without its secret."""
        return Response(TokenOut(self.get_object()).data)

    @extend_schema(request=TokenWanted, responses={201: TokenMade})
    @idempotent(hide=("token",))
    def create(self, request: Request) -> Response:
        """Make a token for yourself, or for a service account you may give its role to."""
        wanted = shape(TokenWanted, request)
        project = wanted["project"] and self.project_for(wanted["project"])
        tokens.not_beyond(self.request.roles, wanted["scopes"], project)
        token, text = tokens.issue(
            tenant=self.request.tenant,
            name=wanted["name"],
            scopes=wanted["scopes"],
            expires_at=wanted["expires_at"],
            project=project,
            actor=self.request.actor,
            now=self.now,
            **self._bearer(wanted["service_account"]),
        )
        return Response({**TokenOut(token).data, "token": text}, status=201)

    def destroy(self, request: Request, pk: str) -> Response:
        """Revoke a token; it stops working at once."""
        tokens.revoke(self.get_object(), actor=self.request.actor, now=self.now)
        return Response(status=204)

    def _bearer(self, account_id: str | None) -> dict[str, Any]:
        actor = self.request.actor
        if account_id is None and actor.kind == "user":
            return {"user_id": actor.id}
        account = ServiceAccount.objects.filter(
            tenant=self.request.tenant, pk=account_id or actor.id, closed_at=None
        ).first()
        path = members.node(account.project) if account else []
        if account is None or not (account.pk == actor.id or self.request.roles.may("members.read", path)):
            raise Missing("There is no such service account here.", fix="List service-accounts.")
        if account.pk != actor.id:
            members.must_give(self.request.roles, Role(account.role), account.project)
        return {"service_account": account}


class Me(TenantViewSet):
    """Whoever the credential of this request belongs to."""

    serializer_class = MeOut
    pagination_class = None
    filter_backends = []
    actions_needed = {"retrieve": "tenant.read"}

    @extend_schema(responses=MeOut)
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
        return Response(MeOut(body).data)
