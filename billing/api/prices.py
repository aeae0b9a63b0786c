"""Prices in the tenant's currency, the list's and its own: past, present and announced."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.mixins import ListModelMixin

from billing.api.amounts import MoneyOut, hourly
from billing.models import PriceVersion
from billing.services import tiers
from tenants.api.filters import Filter
from tenants.api.views import TenantViewSet


class TierOut(serializers.Serializer[Any]):
    """What an hour costs between so many hours of a month; of a package, its hours and what all of them cost."""

    from_hours = serializers.CharField()
    until_hours = serializers.CharField(allow_null=True)
    price = serializers.CharField()


class PriceVersionOut(serializers.ModelSerializer[PriceVersion]):
    """The price of one unit for an hour, valid in [since, until).

    What we take back for others before it ran for `free_start_s` costs nothing. By a model other than `flat`, all that
    you use of the offering in a month counts together, and nothing ever costs more than `per_hour`.
    """

    id = serializers.CharField()
    offering = serializers.CharField(source="offering_id")
    per_hour = serializers.SerializerMethodField()
    since = serializers.DateTimeField(source="valid.lower")
    until = serializers.DateTimeField(source="valid.upper", allow_null=True)
    own = serializers.SerializerMethodField()
    tiers = serializers.SerializerMethodField()

    class Meta:
        model = PriceVersion
        fields = ("id", "offering", "per_hour", "since", "until", "own", "free_start_s", "model", "tiers")

    @extend_schema(responses=MoneyOut)
    def get_per_hour(self, version: PriceVersion) -> dict[str, str]:
        return hourly(version.nano_per_hour, version.currency)

    @extend_schema(responses=TierOut(many=True))
    def get_tiers(self, version: PriceVersion) -> list[dict[str, str | None]]:
        return [
            {"from_hours": each["from"], "until_hours": each["until"], "price": each["price"]}
            for each in tiers.told(version)
        ]

    @extend_schema(responses=serializers.BooleanField())
    def get_own(self, version: PriceVersion) -> bool:
        """Tell whether it is the tenant's own, which comes before the list's as long as it holds."""
        return version.tenant_id is not None


class PriceVersions(ListModelMixin, TenantViewSet):
    """Prices never change once they hold; a new one follows."""

    serializer_class = PriceVersionOut
    sorts = ("-id", "id")
    filters = {"offering": Filter("offering_id"), "at": Filter("valid__contains", "moment")}
    actions_needed = {"list": "offerings.read"}

    def get_queryset(self) -> QuerySet[PriceVersion]:
        known = PriceVersion.objects.paid_by(self.request.tenant.pk)
        return known.filter(currency=self.request.tenant.currency).exclude(offering__state="draft")
