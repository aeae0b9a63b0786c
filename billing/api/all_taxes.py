"""Rates of tax, as operators keep them."""

from typing import ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from billing.domain.tax import per_cent
from billing.models import TaxCategory, TaxRate
from billing.services.tax import rates
from broker.models import Offering
from tenants.api.fields import Strict
from tenants.api.filters import Filter
from tenants.api.operators import AllTenants
from tenants.api.views import shape


class TaxRateOut(serializers.ModelSerializer[TaxRate]):
    """What a country takes of a category, from one day to another."""

    per_cent = serializers.SerializerMethodField()
    since = serializers.DateField(source="valid.lower")
    until = serializers.DateField(source="valid.upper", allow_null=True)

    class Meta:
        model = TaxRate
        fields = (
            "id",
            "jurisdiction",
            "category",
            "per_cent",
            "since",
            "until",
            "used",
            "created_by",
            "created_at",
        )

    def get_per_cent(self, rate: TaxRate) -> str:
        return per_cent(rate.rate_bp)


class TaxRateWanted(Strict):
    jurisdiction = serializers.CharField(max_length=2, help_text="ISO 3166, two letters such as DE.")
    category = serializers.ChoiceField(choices=TaxCategory.choices, default=TaxCategory.STANDARD)
    per_cent = serializers.DecimalField(max_digits=5, decimal_places=2, help_text="19 is 19 %.")
    since = serializers.DateField(help_text="The first day on which it holds.")


class OpsTaxRates(AllTenants):
    """Rates of tax by country, category and day. An invoice is taxed by those of its month's last day."""

    serializer_class, rows, visit = TaxRateOut, TaxRate, "taxes"
    sorts: ClassVar[tuple[str, ...]] = ("-id", "id")
    filters = {"jurisdiction": Filter("jurisdiction"), "category": Filter("category")}

    @extend_schema(request=TaxRateWanted, responses=TaxRateOut, filters=False)
    def publish(self, request: Request) -> Response:
        """Let a rate hold from a day on, or return it where it stands already.

        The day of a rate that no final invoice was taxed by yet corrects it.
        """
        wanted = shape(TaxRateWanted, request)
        asked = {
            "jurisdiction": wanted["jurisdiction"].upper(),
            "category": wanted["category"],
            "rate_bp": int(wanted["per_cent"].scaleb(2)),
            "since": wanted["since"],
        }
        rate = rates.standing(**asked) or rates.publish(**asked, actor=self.actor, now=self.now)
        return Response(TaxRateOut(TaxRate.objects.get(pk=rate.pk)).data)


class TaxedAsWanted(Strict):
    category = serializers.ChoiceField(choices=TaxCategory.choices)


class OpsTaxedAs(AllTenants):
    """Of which category an offering is."""

    serializer_class, rows, visit = TaxedAsWanted, Offering, "taxes"

    @extend_schema(request=TaxedAsWanted, responses=TaxedAsWanted)
    def update(self, request: Request, pk: str) -> Response:
        """Say so; drafts follow with what is charged next, final invoices never."""
        offering, category = self.get_object(), shape(TaxedAsWanted, request)["category"]
        rates.categorize(offering, category, actor=self.actor, now=self.now)
        return Response({"category": rates.category_of(offering)})
