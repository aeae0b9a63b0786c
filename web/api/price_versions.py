"""API of past, current and announced prices in the tenant's currency.

They are list prices, and the tenant's own.
"""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.mixins import ListModelMixin

from billing.models import PriceVersion
from billing.models.prices import PriceModel
from billing.services.catalogue import price_tiers
from web.api.amounts import HourlyPriceField, PriceOut, hourly_price_out
from web.api.base_views import RowViewSet, TenantViewSet, needs
from web.http.filters import QueryFilter


class TierOut(serializers.Serializer[Any]):
    """Price per hour within a range of monthly hours.

    Of a package: its hours, and the price of all of them.
    """

    from_hours = serializers.CharField()
    until_hours = serializers.CharField(allow_null=True)
    price_per_hour = PriceOut(allow_null=True)
    package_price = PriceOut(allow_null=True)


class PriceVersionOut(serializers.ModelSerializer[PriceVersion]):
    """Price of one unit per hour, valid in [since, until).

    Leases that are preempted within their first `free_start_s` seconds cost nothing. By a model other than
    `flat`, all use of the offering in a month counts together, and nothing ever costs more than `price_per_hour`.
    """

    id = serializers.CharField()
    offering = serializers.CharField(source="offering_id")
    price_per_hour = HourlyPriceField()
    since = serializers.DateTimeField(source="valid.lower")
    until = serializers.DateTimeField(source="valid.upper", allow_null=True)
    own = serializers.SerializerMethodField()
    tiers = serializers.SerializerMethodField()

    class Meta:
        model = PriceVersion
        fields = ("id", "offering", "price_per_hour", "since", "until", "own", "free_start_s", "model", "tiers")

    @extend_schema_field(TierOut(many=True))
    def get_tiers(self, version: PriceVersion) -> list[dict[str, Any]]:
        is_package = version.model == PriceModel.PACKAGE
        return [
            {
                "from_hours": each.from_hours,
                "until_hours": each.until_hours,
                "price_per_hour": None if is_package else hourly_price_out(each.nano, version.currency),
                "package_price": hourly_price_out(each.nano, version.currency) if is_package else None,
            }
            for each in price_tiers.tier_ranges(version)
        ]

    @extend_schema_field(serializers.BooleanField())
    def get_own(self, version: PriceVersion) -> bool:
        """Return whether it is tenant-specific; such a price takes precedence over the list price."""
        return version.tenant_id is not None


class PriceVersionRows(RowViewSet):
    """Prices, as tenants and operators list them."""

    rows = PriceVersion.objects.all()
    filters = {"offering": QueryFilter("offering_id"), "at": QueryFilter("valid__contains", "moment")}


class PriceVersionViewSet(PriceVersionRows, ListModelMixin, TenantViewSet):
    """Prices never change once in force; a new one follows."""

    serializer_class = PriceVersionOut
    actions_needed = needs("offerings.read", "list")

    def get_queryset(self) -> QuerySet[PriceVersion]:
        known = PriceVersion.objects.paid_by(self.request.tenant.pk)
        return known.filter(currency=self.request.tenant.currency).exclude(offering__state="draft")
