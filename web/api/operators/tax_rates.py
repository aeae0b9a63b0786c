"""Operators' API of tax rates."""

from typing import Any

from rest_framework import serializers

from billing.domain.tax import format_rate_percent
from billing.models import TaxCategory, TaxRate
from billing.services.tax import tax_rates
from web.api.operators.base_views import CrossTenantViewSet, OperatorAct
from web.api.serializer_fields import StrictSerializer
from web.http.filters import QueryFilter


class TaxRateOut(serializers.ModelSerializer[TaxRate]):
    """Tax rate of a country and category over a range of days."""

    percent = serializers.SerializerMethodField()
    since_day = serializers.DateField(source="valid.lower", help_text="First day of validity.")
    until_day = serializers.DateField(
        source="valid.upper", allow_null=True, help_text="First day on which it is no longer valid."
    )
    created_by_label = serializers.CharField(source="created_by")
    is_used = serializers.BooleanField(source="used", help_text="Whether a final invoice has used it.")

    class Meta:
        model = TaxRate
        fields = ("id", "jurisdiction", "category", "percent", "since_day", "until_day", "is_used", "created_by_label",
                  "created_at")  # fmt: skip

    def get_percent(self, rate: TaxRate) -> str:
        return format_rate_percent(rate.rate_bp)


class TaxRateCreate(StrictSerializer):
    jurisdiction = serializers.CharField(max_length=2, help_text="ISO 3166, two letters such as DE.")
    category = serializers.ChoiceField(choices=TaxCategory.choices, default=TaxCategory.STANDARD)
    percent = serializers.DecimalField(max_digits=5, decimal_places=2, help_text="19 is 19 %.")
    since_day = serializers.DateField(help_text="First day of validity.")


class OperatorTaxRateViewSet(CrossTenantViewSet):
    """Tax rates by country, category and day.

    An invoice is taxed by the rates of its month's last day.
    """

    area = "billing"
    serializer_class, rows, audit_action = TaxRateOut, TaxRate.objects.all(), "taxes"
    filters = {"jurisdiction": QueryFilter("jurisdiction"), "category": QueryFilter("category")}

    @OperatorAct(TaxRateCreate)
    def create(self, body: dict[str, Any]) -> TaxRate:
        """Publish a rate from a day on, or return the same existing one.

        A rate that no final invoice has used yet is corrected by publishing on its own first day.
        """
        wanted = {
            "jurisdiction": body["jurisdiction"].upper(),
            "category": body["category"],
            "rate_bp": int(body["percent"].scaleb(2)),
            "since": body["since_day"],
        }
        return tax_rates.find_tax_rate(**wanted) or tax_rates.publish_tax_rate(**wanted, **self.by)
