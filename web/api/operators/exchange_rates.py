"""Operators' API of exchange rates, by which VAT is stated in the supplier's currency."""

from typing import Any

from rest_framework import serializers

from billing.domain.money import format_fixed_point
from billing.models import ExchangeRate
from billing.models.accounting import MAX_SOURCE_LENGTH
from billing.services.tax import exchange_rates
from web.api.operators.base_views import CrossTenantViewSet, OperatorAct
from web.api.serializer_fields import StrictSerializer
from web.http.filters import QueryFilter

MAX_RATE_LENGTH = 13


class ExchangeRateOut(serializers.ModelSerializer[ExchangeRate]):
    """Price of a currency on a day, in the supplier's currency."""

    own_currency = serializers.CharField(source="own")
    created_by_label = serializers.CharField(source="created_by")
    rate = serializers.SerializerMethodField(help_text="Of one unit, with six decimals.")

    class Meta:
        model = ExchangeRate
        fields = ("id", "currency", "own_currency", "day", "rate", "source", "created_by_label", "created_at")

    def get_rate(self, row: ExchangeRate) -> str:
        return format_fixed_point(row.rate, exchange_rates.RATE_PLACES)


class ExchangeRateCreate(StrictSerializer):
    currency = serializers.CharField(max_length=3, help_text="ISO 4217, three letters such as USD.")
    day = serializers.DateField()
    rate = serializers.CharField(max_length=MAX_RATE_LENGTH, help_text="Of one unit, such as 0.921234.")
    source = serializers.CharField(  # type: ignore[assignment]  # the field of that name
        max_length=MAX_SOURCE_LENGTH, help_text="Who published it, such as ECB."
    )


class OperatorExchangeRateViewSet(CrossTenantViewSet):
    """Exchange rates by currency and day.

    An invoice in another currency states its VAT at the rate of the last day of its month.
    """

    area = "billing"
    serializer_class, rows, audit_action = ExchangeRateOut, ExchangeRate.objects.all(), "taxes"
    filters = {"currency": QueryFilter("currency")}

    @OperatorAct(ExchangeRateCreate)
    def create(self, body: dict[str, Any]) -> ExchangeRate:
        """Add a rate, or return the same existing one. Rates never change."""
        return exchange_rates.add_exchange_rate(
            currency=body["currency"].upper(),
            day=body["day"],
            rate=exchange_rates.parse_rate(body["rate"]),
            source=body["source"],
            **self.by,
        )
