"""Operators' API of all tenants' discounts, campaigns and minimums."""

from typing import Any

from rest_framework import serializers

from billing.models import Campaign, Discount, Minimum
from billing.services.agreements import minimums
from billing.services.agreements.discounts import campaigns, tenant_discounts
from billing.services.agreements.discounts.campaigns import RedemptionLimits
from billing.services.agreements.discounts.discount_terms import DiscountTerms, parse_discount_amount, parse_percent_bp
from web.api.discounts import DiscountOut, DiscountRows, DiscountTermsOut, MinimumOut, MinimumRows
from web.api.operators.base_views import (
    TENANT_FILTER,
    CrossTenantViewSet,
    OperatorAct,
    TenantNamed,
    require_field,
    tenant_or_missing,
)
from web.api.serializer_fields import StrictSerializer


class DiscountTermsIn(StrictSerializer):
    """Either `percent`, such as `12.5`, or `amount` and its currency.

    Empty lists mean everything that is sold.
    """

    name = serializers.CharField(max_length=80, help_text="Shown on invoices.")
    percent = serializers.CharField(max_length=20, allow_null=True, default=None)
    amount = serializers.CharField(max_length=20, allow_null=True, default=None)
    currency = serializers.CharField(max_length=3, default="", allow_blank=True)
    offerings = serializers.ListField(child=serializers.CharField(max_length=40), default=list)
    price_classes = serializers.ListField(child=serializers.CharField(max_length=12), default=list)
    months = serializers.IntegerField(min_value=1, allow_null=True, default=None, help_text="Null: no end.")


class CampaignCreate(DiscountTermsIn):
    code = serializers.CharField(max_length=60)
    since = serializers.DateTimeField(allow_null=True, default=None, help_text="Null: at once.")
    until = serializers.DateTimeField(allow_null=True, default=None)
    max_redemptions = serializers.IntegerField(
        min_value=1, allow_null=True, default=None, help_text="Maximum number of redemptions."
    )


class DiscountCreate(DiscountTermsIn):
    tenant = serializers.CharField(max_length=40)
    first_month = serializers.CharField(
        max_length=7, default="", allow_blank=True, help_text="For example 2026-11; default: the current month."
    )


class MinimumCreate(StrictSerializer):
    tenant = serializers.CharField(max_length=40)
    amount = serializers.CharField(max_length=20, help_text="Amount per full month in the tenant's currency.")
    since = serializers.DateTimeField(allow_null=True, default=None, help_text="Null: at once.")
    until = serializers.DateTimeField(allow_null=True, default=None)


class MinimumChange(StrictSerializer):
    until = serializers.DateTimeField(allow_null=True, help_text="Null: now.")


class CampaignChange(StrictSerializer):
    until = serializers.DateTimeField(allow_null=True, help_text="Null: now.")


class DiscountChange(StrictSerializer):
    last_month = serializers.CharField(
        max_length=7, allow_null=True, help_text="For example 2026-12; null: the current month."
    )


class CampaignOut(DiscountTermsOut, serializers.ModelSerializer[Campaign]):
    """A code, what it grants, and how often it was redeemed."""

    max_redemptions = serializers.IntegerField(source="most", allow_null=True)
    created_by_label = serializers.CharField(source="created_by")
    redemption_count = serializers.IntegerField(source="redeemed")

    class Meta:
        model = Campaign
        fields = ("id", "code", "name", "percent", "amount", "offerings", "price_classes", "since", "until",
                  "months", "max_redemptions", "redemption_count", "created_by_label", "created_at")  # fmt: skip


class OperatorDiscountOut(TenantNamed, DiscountOut):
    """A discount and its tenant."""

    more = ("given_by",)


class OperatorMinimumOut(TenantNamed, MinimumOut):
    """A minimum and its tenant."""

    more = ("agreed_by",)


class OperatorCampaignViewSet(CrossTenantViewSet):
    """Codes that tenants may redeem."""

    area = "billing"
    serializer_class, rows, audit_action = CampaignOut, Campaign.objects.all(), "discounts"

    @OperatorAct(CampaignCreate)
    def create(self, body: dict[str, Any]) -> Campaign:
        """Create a code; a code that ever existed cannot be created again."""
        about = RedemptionLimits(
            **{name: body[name] for name in ("since", "until", "months")}, most=body["max_redemptions"]
        )
        return campaigns.create_campaign(body["code"], parse_terms(body, body["currency"]), about, **self.by)

    @OperatorAct(CampaignChange, find=campaigns.get_campaign)
    def partial_update(self, campaign: Campaign, body: dict[str, Any]) -> Campaign:
        """End redemption at a moment; discounts already granted stay."""
        return campaigns.end_campaign(campaign, at=require_field(body, "until"), **self.by)


class OperatorDiscountViewSet(DiscountRows, CrossTenantViewSet):
    """Current and past discounts of tenants."""

    area = "billing"
    serializer_class, audit_action = OperatorDiscountOut, "discounts"
    filters = TENANT_FILTER

    @OperatorAct(DiscountCreate)
    def create(self, body: dict[str, Any]) -> Discount:
        """Grant a tenant a discount from a month on, or return the same existing one."""
        tenant = tenant_or_missing(body["tenant"])
        return tenant_discounts.give_discount(
            tenant,
            parse_terms(body, body["currency"] or tenant.currency),
            first_month=body["first_month"],
            months=body["months"],
            **self.by,
        )

    @OperatorAct(DiscountChange, find=tenant_discounts.get_discount)
    def partial_update(self, given: Discount, body: dict[str, Any]) -> Discount:
        """End it with a month."""
        return tenant_discounts.end_discount(given, last_month=require_field(body, "last_month") or "", **self.by)


class OperatorMinimumViewSet(MinimumRows, CrossTenantViewSet):
    """Minimum monthly spend that tenants agreed to."""

    area = "billing"
    serializer_class, audit_action = OperatorMinimumOut, "discounts"
    filters = TENANT_FILTER

    @OperatorAct(MinimumCreate)
    def create(self, body: dict[str, Any]) -> Minimum:
        """Set a tenant's minimum monthly spend from a moment on."""
        tenant = tenant_or_missing(body["tenant"])
        return minimums.create_minimum(
            tenant,
            minor=parse_discount_amount(body["amount"], tenant.currency),
            since=body["since"] or self.now,
            until=body["until"],
            **self.by,
        )

    @OperatorAct(MinimumChange, find=minimums.find_minimum)
    def partial_update(self, agreed: Minimum, body: dict[str, Any]) -> Minimum:
        """End it at a future moment."""
        return minimums.end_minimum(agreed, at=require_field(body, "until") or self.now, **self.by)


def parse_terms(wanted: dict[str, Any], currency: str) -> DiscountTerms:
    """Return the terms in a request body, with amounts parsed."""
    percent, amount = wanted["percent"], wanted["amount"]
    return DiscountTerms(
        name=wanted["name"],
        percent_bp=parse_percent_bp(percent) if percent is not None else None,
        minor=parse_discount_amount(amount, currency) if amount is not None else None,
        currency=currency,
        offerings=tuple(wanted["offerings"]),
        price_classes=tuple(wanted["price_classes"]),
    )
