"""API of a tenant's discounts, redeemed codes and minimum spend."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from billing.domain.money import format_fixed_point
from billing.models import Discount, Minimum
from billing.services.agreements.discounts import coupons
from web.api.amounts import AmountField
from web.api.base_views import RowViewSet, WholeTenantViewSet, needs, validated_body
from web.api.serializer_fields import StrictSerializer
from web.http.idempotency import idempotent


class DiscountTermsOut(serializers.Serializer[Any]):
    """A percentage, or an amount off every month, of some offerings or of all."""

    percent = serializers.SerializerMethodField(help_text="For example 12.50; null for a fixed amount.")
    amount = AmountField(allow_null=True)

    def get_percent(self, row: Any) -> str | None:
        return None if row.percent_bp is None else format_fixed_point(row.percent_bp, 2)


class DiscountOut(DiscountTermsOut, serializers.ModelSerializer[Discount]):
    """A discount, subtracted before a line is rounded.

    Percentages come first, in the order they were granted, then amounts.
    """

    code = serializers.CharField(source="campaign.code", default=None, allow_null=True)

    class Meta:
        model = Discount
        fields = ("id", "name", "percent", "amount", "offerings", "price_classes", "first_month", "last_month",
                  "code", "given_at")  # fmt: skip


class CouponRedemption(StrictSerializer):
    code = serializers.CharField(max_length=60, help_text="The promotion code; case-insensitive.")


class DiscountRows(RowViewSet):
    """Discounts, as tenants and operators list them."""

    rows = Discount.objects.select_related("tenant", "campaign")


class DiscountViewSet(DiscountRows, ListModelMixin, RetrieveModelMixin, WholeTenantViewSet):
    """Discounts of the whole tenant."""

    serializer_class = DiscountOut
    actions_needed = needs("billing.read", "list", "retrieve") | needs("billing.write", "create")

    @extend_schema(request=CouponRedemption, responses={201: DiscountOut})
    @idempotent()
    def create(self, request: Request) -> Response:
        """Redeem a code, once; its discount holds from the current month on."""
        code = validated_body(CouponRedemption, request)["code"]
        given = coupons.redeem_coupon(self.request.tenant, code, **self.by)
        where = {"Location": f"/api/v1/discounts/{given.pk}"}
        return Response(self.get_serializer(given).data, status=201, headers=where)


class MinimumOut(serializers.ModelSerializer[Minimum]):
    """Minimum amount of every whole month, before tax.

    Of a month in which it holds only partly, that part counts.
    """

    amount = AmountField()
    since = serializers.DateTimeField(source="valid.lower")
    until = serializers.DateTimeField(source="valid.upper", allow_null=True)

    class Meta:
        model = Minimum
        fields = ("id", "amount", "since", "until", "agreed_at")


class MinimumRows(RowViewSet):
    """Minimum spend, as tenants and operators list it."""

    rows = Minimum.objects.select_related("tenant")


class MinimumViewSet(MinimumRows, ListModelMixin, RetrieveModelMixin, WholeTenantViewSet):
    """Agreed minimum spend."""

    serializer_class = MinimumOut
    actions_needed = needs("billing.read", "list", "retrieve")
