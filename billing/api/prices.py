"""List prices in the tenant's currency: past, present and announced."""

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.mixins import ListModelMixin

from billing.api.amounts import MoneyOut, hourly
from billing.models import PriceVersion
from billing.services.prices import LIST
from tenants.api.filters import Filter
from tenants.api.views import TenantViewSet


class PriceVersionOut(serializers.ModelSerializer[PriceVersion]):
    """The price of one unit for an hour, valid in [since, until)."""

    id = serializers.CharField()
    offering = serializers.CharField(source="offering_id")
    per_hour = serializers.SerializerMethodField()
    since = serializers.DateTimeField(source="valid.lower")
    until = serializers.DateTimeField(source="valid.upper", allow_null=True)

    class Meta:
        model = PriceVersion
        fields = ("id", "offering", "per_hour", "since", "until")

    @extend_schema(responses=MoneyOut)
    def get_per_hour(self, version: PriceVersion) -> dict[str, str]:
        return hourly(version.nano_per_hour, version.currency)


class PriceVersions(ListModelMixin, TenantViewSet):
    """Prices never change once they hold; a new one follows."""

    serializer_class = PriceVersionOut
    sorts = ("-id", "id")
    filters = {"offering": Filter("offering_id"), "at": Filter("valid__contains", "moment")}
    actions_needed = {"list": "offerings.read"}

    def get_queryset(self) -> QuerySet[PriceVersion]:
        return PriceVersion.objects.filter(
            rate_card__name=LIST, currency=self.request.tenant.currency
        ).exclude(offering__state="draft")
