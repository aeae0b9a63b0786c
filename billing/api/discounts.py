"""What a tenant pays less, the codes that it redeems for that, and the least that it agreed to spend."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from billing.api.amounts import MoneyOut, money
from billing.api.topups import OfTheTenant
from billing.domain.money import fixed_point
from billing.models import Discount, Minimum
from billing.services.discounts import coupons
from tenants.api.fields import Strict
from tenants.api.idempotency import idempotent
from tenants.api.views import shape


class TermsOut(serializers.Serializer[Any]):
    """A part of the price, or an amount off every month; of some of what is sold, or of all."""

    percent = serializers.SerializerMethodField(help_text="Such as 12.50; null where it is an amount.")
    amount = serializers.SerializerMethodField()

    def get_percent(self, row: Any) -> str | None:
        return None if row.percent_bp is None else fixed_point(row.percent_bp, 2)

    @extend_schema(responses=MoneyOut(allow_null=True))
    def get_amount(self, row: Any) -> dict[str, str] | None:
        return None if row.minor is None else money(row.minor, row.currency)


class DiscountOut(TermsOut, serializers.ModelSerializer[Discount]):
    """It is taken off before a line is rounded: percentages first, in the order they were given, then amounts."""

    code = serializers.CharField(source="campaign.code", default=None, allow_null=True)

    class Meta:
        model = Discount
        fields = (
            "id",
            "name",
            "percent",
            "amount",
            "offerings",
            "price_classes",
            "first_month",
            "last_month",
            "code",
            "given_at",
        )


class CouponWanted(Strict):
    code = serializers.CharField(max_length=60, help_text="As it was given to you; capitals do not matter.")


class Discounts(ListModelMixin, RetrieveModelMixin, OfTheTenant):
    """Discounts are the whole tenant's, as its invoices are."""

    serializer_class = DiscountOut
    sorts: ClassVar[tuple[str, ...]] = ("-id", "id")
    actions_needed = {"list": "billing.read", "retrieve": "billing.read", "create": "billing.write"}

    def get_queryset(self) -> QuerySet[Discount]:
        return self.visible(Discount.objects.select_related("campaign"))

    @extend_schema(request=CouponWanted, responses={201: DiscountOut})
    @idempotent()
    def create(self, request: Request) -> Response:
        """Redeem a code, once. Its discount holds from the present month on."""
        code = shape(CouponWanted, request)["code"]
        given = coupons.redeem(self.request.tenant, code, actor=self.request.actor, now=self.now)
        where = {"Location": f"/api/v1/discounts/{given.pk}"}
        return Response(self.get_serializer(given).data, status=201, headers=where)


class MinimumOut(serializers.ModelSerializer[Minimum]):
    """What every whole month comes to at least, before tax; of parts of months, as much as it holds in them."""

    amount = serializers.SerializerMethodField()
    since = serializers.DateTimeField(source="valid.lower")
    until = serializers.DateTimeField(source="valid.upper", allow_null=True)

    class Meta:
        model = Minimum
        fields = ("id", "amount", "since", "until", "agreed_at")

    @extend_schema(responses=MoneyOut)
    def get_amount(self, agreed: Minimum) -> dict[str, str]:
        return money(agreed.minor, agreed.currency)


class Minimums(ListModelMixin, RetrieveModelMixin, OfTheTenant):
    """The least that was agreed on."""

    serializer_class = MinimumOut
    sorts: ClassVar[tuple[str, ...]] = ("-id", "id")
    actions_needed = {"list": "billing.read", "retrieve": "billing.read"}

    def get_queryset(self) -> QuerySet[Minimum]:
        return self.visible(Minimum.objects.all())
