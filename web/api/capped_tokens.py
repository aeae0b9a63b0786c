"""API of tokens with spend caps; ownership and permissions are handled by `tenants`."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_field, extend_schema_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from billing.models import TokenCap
from billing.services.funds.holds import token_caps
from billing.services.funds.holds.token_caps import TokenCapRequest, TokenCapUse
from tenants.models import ApiToken, Tenant
from web.api.amounts import MoneyOut, money_out, require_amount
from web.api.base_views import validated_body
from web.api.serializer_fields import StrictSerializer
from web.api.tenant_serializers import CreatedTokenOut, IdField, TokenCreate, TokenOut
from web.api.tokens import TokenViewSet
from web.http.idempotency import idempotent

MAX_AMOUNT_LENGTH = 20


class TokenCapOut(serializers.Serializer[Any]):
    """Spend cap of a token, and what is spent or held of it."""

    daily = MoneyOut(allow_null=True)
    taken_today = MoneyOut()
    total = MoneyOut(allow_null=True)
    taken = MoneyOut()
    offerings = serializers.ListField(child=serializers.CharField(), help_text="Empty: any.")


class CappedTokenOut(TokenOut):
    cap = serializers.SerializerMethodField()

    class Meta(TokenOut.Meta):
        fields = (*TokenOut.Meta.fields, "cap")  # type: ignore[assignment]

    @extend_schema_field(TokenCapOut(allow_null=True))
    def get_cap(self, token: ApiToken) -> dict[str, Any] | None:
        found: TokenCapUse | None = self.context["caps"].get(token.pk)
        return None if found is None else cap_body(found)


class CreatedCappedTokenOut(CreatedTokenOut):
    cap = TokenCapOut(allow_null=True)

    class Meta(CreatedTokenOut.Meta):
        fields = (*CreatedTokenOut.Meta.fields, "cap")  # type: ignore[assignment]


class TokenCapIn(StrictSerializer):
    daily = serializers.CharField(max_length=MAX_AMOUNT_LENGTH, required=False, help_text="Daily cap.")
    total = serializers.CharField(
        max_length=MAX_AMOUNT_LENGTH, required=False, help_text="Total cap over the token's lifetime."
    )
    offerings = serializers.ListField(child=IdField(), max_length=token_caps.MAX_OFFERINGS, required=False)


@extend_schema_serializer(component_name="TokenWanted")
class CappedTokenCreate(TokenCreate):
    cap = TokenCapIn(required=False, allow_null=True, default=None)


class CappedTokenViewSet(TokenViewSet):
    """Your tokens; owners and admins of the tenant see everybody's.

    A cap limits the cost of the leases a token creates.
    """

    serializer_class = CappedTokenOut

    def list(self, request: Request) -> Response:
        """Return all tokens, without their secrets."""
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset())) or []
        return self.get_paginated_response(self._rows(page))

    @extend_schema(responses=CappedTokenOut)
    def retrieve(self, request: Request, pk: str) -> Response:
        """Return one token, without its secret."""
        return Response(self._rows([self.get_object()])[0])

    @extend_schema(request=CappedTokenCreate, responses={201: CreatedCappedTokenOut})
    @idempotent(hide=("token",))
    def create(self, request: Request) -> Response:
        """Create a token for yourself, or for a service account whose role you may grant.

        It may have a spend cap.
        """
        wanted = validated_body(CappedTokenCreate, request)
        token_caps.refuse_capped_token(self.request.actor)
        cap = parse_cap(wanted["cap"] or {}, self.request.tenant.currency)
        token, text = self.issue(wanted)
        token_caps.set_token_cap(token, cap, **self.by)
        return Response({**self._rows([token])[0], "token": text}, status=201)

    def _rows(self, found: Sequence[ApiToken]) -> Any:
        return token_rows(found, tenant=self.request.tenant, now=self.now)


def token_rows(found: Sequence[ApiToken], *, tenant: Tenant, now: datetime) -> Any:
    """Return tokens as responses show them, with their caps."""
    used = token_caps.token_cap_use(found, tenant=tenant, now=now)
    return CappedTokenOut(found, many=True, context={"caps": used}).data


def parse_cap(wanted: dict[str, Any], currency: str) -> TokenCapRequest:
    """Parse a cap of a request body, or raise InvalidValue, which names the field."""
    return TokenCapRequest(
        daily_minor=_parse_amount(wanted, "daily", currency),
        total_minor=_parse_amount(wanted, "total", currency),
        offerings=wanted.get("offerings", ()),
    )


def cap_body(used: TokenCapUse) -> dict[str, Any]:
    cap: TokenCap = used.cap
    return {
        "daily": None if cap.daily_minor is None else money_out(cap.daily_minor, cap.currency),
        "taken_today": money_out(used.today, cap.currency),
        "total": None if cap.total_minor is None else money_out(cap.total_minor, cap.currency),
        "taken": money_out(used.in_all, cap.currency),
        "offerings": cap.offerings,
    }


def _parse_amount(wanted: dict[str, Any], field: str, currency: str) -> int | None:
    text = wanted.get(field)
    return require_amount(field, text, currency, example="20.00") if text else None
