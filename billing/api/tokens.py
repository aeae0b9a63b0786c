"""API tokens with what they may spend; whose they are and what they may do is the tenants' floor's."""

from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from billing.api.amounts import MoneyOut, money
from billing.domain.money import NotAnAmount, minor_of
from billing.models import TokenCap
from billing.services.funds import caps
from billing.services.funds.caps import Used, Wanted
from tenants.api.fields import Strict
from tenants.api.idempotency import idempotent
from tenants.api.serializers import Id, TokenMade, TokenOut, TokenWanted
from tenants.api.tokens import Tokens
from tenants.api.views import shape
from tenants.models import ApiToken
from tenants.services import tokens
from tenants.services.refusals import Invalid

LONGEST = 20


class CapOut(serializers.Serializer[Any]):
    """What a token may spend at most, and what is taken of it: spent, or set aside for what its leases may cost."""

    daily = MoneyOut(allow_null=True)
    taken_today = MoneyOut()
    total = MoneyOut(allow_null=True)
    taken = MoneyOut()
    offerings = serializers.ListField(child=serializers.CharField(), help_text="Empty: any.")


class CappedTokenOut(TokenOut):
    cap = serializers.SerializerMethodField()

    class Meta(TokenOut.Meta):
        fields = (*TokenOut.Meta.fields, "cap")  # type: ignore[assignment]

    @extend_schema(responses=CapOut)
    def get_cap(self, token: ApiToken) -> dict[str, Any] | None:
        found: Used | None = self.context["caps"].get(token.pk)
        return None if found is None else told(found)


class CappedTokenMade(TokenMade):
    cap = CapOut(allow_null=True)

    class Meta(TokenMade.Meta):
        fields = (*TokenMade.Meta.fields, "cap")  # type: ignore[assignment]


class CapWanted(Strict):
    daily = serializers.CharField(
        max_length=LONGEST, required=False, help_text="An amount for each of your days."
    )
    total = serializers.CharField(
        max_length=LONGEST, required=False, help_text="An amount for all of its life."
    )
    offerings = serializers.ListField(child=Id(), max_length=caps.MOST, required=False)


@extend_schema_serializer(component_name="TokenWanted")
class CappedTokenWanted(TokenWanted):
    cap = CapWanted(required=False, allow_null=True, default=None)


class CappedTokens(Tokens):
    """Your tokens; those who lead the tenant see everybody's. A cap bounds what the leases of a token may cost."""

    serializer_class = CappedTokenOut

    def list(self, request: Request) -> Response:
        """Return all tokens, without their secrets."""
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset())) or []
        return self.get_paginated_response(self._told(page))

    @extend_schema(responses=CappedTokenOut)
    def retrieve(self, request: Request, pk: str) -> Response:
        """Return one token, without its secret."""
        return Response(self._told([self.get_object()])[0])

    @extend_schema(request=CappedTokenWanted, responses={201: CappedTokenMade})
    @idempotent(hide=("token",))
    def create(self, request: Request) -> Response:
        """Make a token for yourself, or for a service account you may give its role to; with a cap, or without."""
        wanted = shape(CappedTokenWanted, request)
        caps.may_make(self.request.actor)
        cap = read(wanted["cap"] or {}, self.request.tenant.currency)
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
        caps.set_cap(token, cap, actor=self.request.actor, now=self.now)
        return Response({**self._told([token])[0], "token": text}, status=201)

    def _told(self, found: Any) -> Any:
        used = caps.used(found, tenant=self.request.tenant, now=self.now)
        return CappedTokenOut(found, many=True, context={"caps": used}).data


def read(wanted: dict[str, Any], currency: str) -> Wanted:
    """Read a cap of a body, or raise Invalid, which names the field."""
    return Wanted(
        daily_minor=_minor(wanted, "daily", currency),
        total_minor=_minor(wanted, "total", currency),
        offerings=wanted.get("offerings", ()),
    )


def told(used: Used) -> dict[str, Any]:
    cap: TokenCap = used.cap
    return {
        "daily": None if cap.daily_minor is None else money(cap.daily_minor, cap.currency),
        "taken_today": money(used.today, cap.currency),
        "total": None if cap.total_minor is None else money(cap.total_minor, cap.currency),
        "taken": money(used.in_all, cap.currency),
        "offerings": cap.offerings,
    }


def _minor(wanted: dict[str, Any], field: str, currency: str) -> int | None:
    if not wanted.get(field):
        return None
    try:
        return minor_of(wanted[field], currency)
    except NotAnAmount as odd:
        raise Invalid(field, str(odd), fix="Send an amount such as 20.00.") from odd
