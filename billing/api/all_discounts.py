"""Discounts, campaigns and minimums of all tenants, as operators keep them."""

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from billing.api.all_prices import tenant_or_missing
from billing.api.discounts import DiscountOut, MinimumOut, TermsOut
from billing.models import Campaign, Discount, Minimum
from billing.services import minimums
from billing.services.discounts import campaigns, giving
from billing.services.discounts.campaigns import Round
from billing.services.discounts.terms import Terms, amount_of, percent_of
from broker.api.all_leases import Named
from tenants.api.fields import Strict
from tenants.api.filters import Filter
from tenants.api.operators import AllTenants
from tenants.api.views import shape
from tenants.services import walls


class TermsWanted(Strict):
    """Either `percent`, such as `12.5`, or `amount` and its currency; empty lists are everything that is sold."""

    name = serializers.CharField(max_length=80, help_text="As invoices say it.")
    percent = serializers.CharField(max_length=20, allow_null=True, default=None)
    amount = serializers.CharField(max_length=20, allow_null=True, default=None)
    currency = serializers.CharField(max_length=3, default="", allow_blank=True)
    offerings = serializers.ListField(child=serializers.CharField(max_length=40), default=list)
    price_classes = serializers.ListField(child=serializers.CharField(max_length=12), default=list)
    months = serializers.IntegerField(min_value=1, allow_null=True, default=None, help_text="Null: for good.")


class CampaignWanted(TermsWanted):
    code = serializers.CharField(max_length=60)
    since = serializers.DateTimeField(allow_null=True, default=None, help_text="Null: at once.")
    until = serializers.DateTimeField(allow_null=True, default=None)
    most = serializers.IntegerField(
        min_value=1, allow_null=True, default=None, help_text="Redemptions in all."
    )


class DiscountWanted(TermsWanted):
    tenant = serializers.CharField(max_length=40)
    first_month = serializers.CharField(
        max_length=7, default="", allow_blank=True, help_text="Such as 2026-11; else the present one."
    )


class MinimumWanted(Strict):
    tenant = serializers.CharField(max_length=40)
    amount = serializers.CharField(max_length=20, help_text="Of a whole month, in the tenant's currency.")
    since = serializers.DateTimeField(allow_null=True, default=None, help_text="Null: at once.")
    until = serializers.DateTimeField(allow_null=True, default=None)


class MinimumEndWanted(Strict):
    at = serializers.DateTimeField(allow_null=True, help_text="Null: at once.")


class CampaignEndWanted(Strict):
    at = serializers.DateTimeField(allow_null=True, help_text="Null: at once.")


class DiscountEndWanted(Strict):
    last_month = serializers.CharField(
        max_length=7, allow_null=True, help_text="Such as 2026-12; null: the present one."
    )


class CampaignOut(TermsOut, serializers.ModelSerializer[Campaign]):
    """A code, what it gives, and how often it was redeemed."""

    class Meta:
        model = Campaign
        fields = (
            "id",
            "code",
            "name",
            "percent",
            "amount",
            "offerings",
            "price_classes",
            "since",
            "until",
            "months",
            "most",
            "redeemed",
            "created_by",
            "created_at",
        )


class DiscountSeenOut(DiscountOut):
    """A discount, and whose."""

    tenant = Named()

    class Meta(DiscountOut.Meta):
        fields = ("tenant", *DiscountOut.Meta.fields, "given_by")  # type: ignore[assignment]


class MinimumSeenOut(MinimumOut):
    """A minimum, and whose."""

    tenant = Named()

    class Meta(MinimumOut.Meta):
        fields = ("tenant", *MinimumOut.Meta.fields, "agreed_by")  # type: ignore[assignment]


class OpsCampaigns(AllTenants):
    """Codes that tenants may redeem."""

    serializer_class, rows, visit = CampaignOut, Campaign, "discounts"
    sorts: ClassVar[tuple[str, ...]] = ("-id", "id")

    @extend_schema(request=CampaignWanted, responses=CampaignOut, filters=False)
    def publish(self, request: Request) -> Response:
        """Make a code; one that was ever made is never made again."""
        wanted = shape(CampaignWanted, request)
        about = Round(**{name: wanted[name] for name in ("since", "until", "months", "most")})
        made = campaigns.make(
            wanted["code"], terms_of(wanted, wanted["currency"]), about, actor=self.actor, now=self.now
        )
        return Response(CampaignOut(made).data)

    @extend_schema(request=CampaignEndWanted, responses=CampaignOut)
    def end(self, request: Request, pk: str) -> Response:
        """Let nobody redeem it from a moment on; whoever did keeps what it got."""
        found, at = campaigns.find(pk), shape(CampaignEndWanted, request)["at"]
        return Response(CampaignOut(campaigns.end(found, at=at, actor=self.actor, now=self.now)).data)


class OpsDiscounts(AllTenants):
    """Discounts that tenants have, or had."""

    serializer_class, rows, visit = DiscountSeenOut, Discount, "discounts"
    sorts: ClassVar[tuple[str, ...]] = ("-id", "id")
    filters = {"tenant": Filter("tenant_id")}

    @extend_schema(request=DiscountWanted, responses=DiscountSeenOut, filters=False)
    def publish(self, request: Request) -> Response:
        """Give a tenant a discount from a month on, or return it where it stands already."""
        wanted = shape(DiscountWanted, request)
        tenant = tenant_or_missing(wanted["tenant"])
        given = giving.give(
            tenant,
            terms_of(wanted, wanted["currency"] or tenant.currency),
            first_month=wanted["first_month"],
            months=wanted["months"],
            actor=self.actor,
            now=self.now,
        )
        return self._told(given.pk)

    @extend_schema(request=DiscountEndWanted, responses=DiscountSeenOut)
    def end(self, request: Request, pk: str) -> Response:
        """Let it end with a month."""
        with walls.as_staff():
            found = giving.find(pk)
        last = shape(DiscountEndWanted, request)["last_month"] or ""
        return self._told(giving.end(found, last_month=last, actor=self.actor, now=self.now).pk)

    def _told(self, pk: str) -> Response:
        with walls.as_staff():
            return Response(DiscountSeenOut(giving.find(pk)).data)


class OpsMinimums(AllTenants):
    """What tenants agreed to spend at least."""

    serializer_class, rows, visit = MinimumSeenOut, Minimum, "discounts"
    sorts: ClassVar[tuple[str, ...]] = ("-id", "id")
    filters = {"tenant": Filter("tenant_id")}

    @extend_schema(request=MinimumWanted, responses=MinimumSeenOut, filters=False)
    def publish(self, request: Request) -> Response:
        """Let a tenant pay at least so much a month from a moment on."""
        wanted = shape(MinimumWanted, request)
        tenant = tenant_or_missing(wanted["tenant"])
        made = minimums.agree(
            tenant,
            minor=amount_of(wanted["amount"], tenant.currency),
            since=wanted["since"] or self.now,
            until=wanted["until"],
            actor=self.actor,
            now=self.now,
        )
        return self._told(made.pk)

    @extend_schema(request=MinimumEndWanted, responses=MinimumSeenOut)
    def end(self, request: Request, pk: str) -> Response:
        """Let it end at a moment that is still to come."""
        with walls.as_staff():
            found = minimums.find(pk)
        at = shape(MinimumEndWanted, request)["at"] or self.now
        return self._told(minimums.end(found, at=at, actor=self.actor, now=self.now).pk)

    def _told(self, pk: str) -> Response:
        with walls.as_staff():
            return Response(MinimumSeenOut(minimums.find(pk)).data)


def terms_of(wanted: dict[str, Any], currency: str) -> Terms:
    """Return what a call asks for, its numbers read."""
    percent, amount = wanted["percent"], wanted["amount"]
    return Terms(
        name=wanted["name"],
        percent_bp=percent_of(percent) if percent is not None else None,
        minor=amount_of(amount, currency) if amount is not None else None,
        currency=currency,
        offerings=tuple(wanted["offerings"]),
        price_classes=tuple(wanted["price_classes"]),
    )
