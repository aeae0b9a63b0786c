"""Operators' API of their tokens."""

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from tenants.domain.operator_scopes import OPERATOR_SCOPES
from tenants.domain.single_line_text import NAME_LENGTH
from tenants.models import OperatorToken
from tenants.services import operator_tokens
from tenants.services.errors import Fix, NotAllowed, ObjectNotFound
from web.api.base_views import validated_body
from web.api.operators.base_views import CrossTenantViewSet
from web.api.serializer_fields import StrictSerializer
from web.http.filters import QueryFilter
from web.http.idempotency import idempotent


class OperatorTokenOut(serializers.ModelSerializer[OperatorToken]):
    """A token of an operator; its text is shown once, when it is created."""

    owner = serializers.EmailField(source="user.email")

    class Meta:
        model = OperatorToken
        fields = ("id", "name", "prefix", "owner", "scopes", "created_at", "expires_at", "last_used_at", "revoked_at")


class CreatedOperatorTokenOut(OperatorTokenOut):
    token = serializers.CharField(help_text="Shown once.")

    class Meta(OperatorTokenOut.Meta):
        fields = (*OperatorTokenOut.Meta.fields, "token")  # type: ignore[assignment]


class OperatorTokenCreate(StrictSerializer):
    name = serializers.CharField(max_length=NAME_LENGTH)
    scopes = serializers.ListField(child=serializers.ChoiceField(choices=sorted(OPERATOR_SCOPES)), min_length=1)
    expires_at = serializers.DateTimeField(help_text="Within a year.")


class OperatorTokenViewSet(CrossTenantViewSet):
    """Tokens of all operators; only a signed-in operator creates and revokes them."""

    serializer_class, audit_action, area = OperatorTokenOut, "tokens", "system"
    rows = OperatorToken.objects.select_related("user")
    filters = {"revoked": QueryFilter("revoked_at__isnull", "flag_not")}
    without_scope = frozenset({"current"})

    @extend_schema(request=OperatorTokenCreate, responses={201: CreatedOperatorTokenOut})
    @idempotent(hide=("token",))
    def create(self, request: Request) -> Response:
        """Create a token of the signed-in operator."""
        wanted = validated_body(OperatorTokenCreate, request)
        token, text = operator_tokens.issue_operator_token(request.user, **wanted, **self.by)  # type: ignore[arg-type]
        token.token = text  # type: ignore[attr-defined]
        location = f"/api/v1/ops/tokens/{token.pk}"
        return Response(CreatedOperatorTokenOut(token).data, status=201, headers={"Location": location})

    @extend_schema(operation_id="ops_tokens_current", responses=OperatorTokenOut, filters=False)
    @action(detail=False, pagination_class=None, filter_backends=[])
    def current(self, request: Request) -> Response:
        """Return the token you send: its scopes and expiry.

        It needs no scope. Signed in by session there is none.
        """
        if not isinstance(request.auth, OperatorToken):
            raise ObjectNotFound(
                "You are signed in by session, not by a token.",
                fix=Fix("List the tokens of operators.", "GET", "/api/v1/ops/tokens"),
            )
        return Response(OperatorTokenOut(request.auth).data)

    def destroy(self, request: Request, pk: str) -> Response:
        """Revoke a token for good."""
        if self.by["actor"].token:
            raise NotAllowed("A token revokes no operators' tokens.", fix="Sign in and revoke it on the Tokens page.")
        operator_tokens.revoke_operator_token(self.find_row(), **self.by)
        return Response(status=204)
