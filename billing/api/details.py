"""Who a tenant is on paper."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from billing.domain import tax
from billing.domain.parties import LONGEST_NUMBER, Party
from billing.domain.tax import Treatment
from billing.models import BillingDetails
from billing.models.details import LONGEST
from billing.services.tax import details, standings
from tenants.api.etag import Etagged
from tenants.api.fields import Strict
from tenants.api.views import TenantViewSet, shape


class PartyOut(serializers.Serializer[Any]):
    """Who stands on an invoice."""

    name = serializers.CharField()
    street = serializers.CharField()
    extra = serializers.CharField()
    postcode = serializers.CharField()
    city = serializers.CharField()
    country = serializers.CharField(help_text="ISO 3166, two letters.")
    vat_id = serializers.CharField()
    email = serializers.CharField()


@extend_schema_serializer(many=False)
class DetailsOut(serializers.Serializer[Any]):
    """What your next invoices are made out to, who supplies, and how you are taxed by that."""

    customer = PartyOut()
    supplier = PartyOut(allow_null=True)
    treatment = serializers.ChoiceField(choices=[each.value for each in Treatment], allow_blank=True)
    treatment_in_words = serializers.CharField(allow_blank=True)
    letters = serializers.BooleanField(help_text="Whether invoices, and what becomes of them, come by mail.")


class DetailsWanted(Strict):
    name = serializers.CharField(max_length=LONGEST)
    street = serializers.CharField(max_length=LONGEST)
    extra = serializers.CharField(max_length=LONGEST, allow_blank=True, default="")
    postcode = serializers.CharField(max_length=20, allow_blank=True, default="")
    city = serializers.CharField(max_length=LONGEST)
    country = serializers.CharField(max_length=2, help_text="ISO 3166, two letters such as DE.")
    vat_id = serializers.CharField(
        max_length=2 * LONGEST_NUMBER,
        allow_blank=True,
        default="",
        help_text="Its form and check digits are looked at; blanks in it do not matter.",
    )
    email = serializers.CharField(max_length=254, allow_blank=True, default="")
    letters = serializers.BooleanField(required=False, help_text="Left out, it stays as it is.")


class Details(TenantViewSet):
    """The whole tenant's, as its invoices are."""

    serializer_class = DetailsOut
    pagination_class = None
    actions_needed = {"list": "billing.read", "replace": "billing.write"}

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if self.action is not None:  # else the method is not one of ours, which is said later
            self.allow()

    def get_queryset(self) -> QuerySet[BillingDetails]:
        return BillingDetails.objects.filter(tenant=self.request.tenant)

    @extend_schema(responses=DetailsOut, filters=False)
    def list(self, request: Request) -> Response:
        """Return who you are on your next invoice, and its ETag."""
        return self._told()

    @extend_schema(request=DetailsWanted, responses=DetailsOut)
    def replace(self, request: Request) -> Response:
        """Say anew who you are; needs If-Match. Drafts follow at once, final invoices stay as they are."""
        wanted = shape(DetailsWanted, request)
        Etagged.match(request, self._row(lock=True))
        letters = wanted.pop("letters", None)
        details.tell(
            self.request.tenant, told=Party(**wanted), actor=self.request.actor, now=self.now, letters=letters
        )
        return self._told()

    def _row(self, *, lock: bool = False) -> BillingDetails:
        rows = self.get_queryset()
        found = (rows.select_for_update() if lock else rows).first()
        return found or BillingDetails(tenant=self.request.tenant, version=0)

    def _told(self) -> Response:
        tenant = self.request.tenant
        taxed = standings.standing(tenant)
        body = {
            "customer": standings.customer(tenant).as_dict(),
            "supplier": by.as_dict() if (by := standings.supplier()) else None,
            "treatment": taxed.treatment.value,
            "treatment_in_words": tax.IN_WORDS[taxed.treatment],
            "letters": details.letters(tenant),
        }
        return Response(DetailsOut(body).data, headers={"ETag": f'"{self._row().version}"'})
