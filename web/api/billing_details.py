"""API of a tenant's billing details."""

from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from billing.domain import tax
from billing.domain.document_formats import Language
from billing.domain.parties import MAX_VAT_NUMBER_LENGTH, InvoiceParty
from billing.domain.tax import TaxTreatment
from billing.models import BillingDetails
from billing.models.billing_details import MAX_LENGTH
from billing.models.invoices import MAX_PO_NUMBER_LENGTH
from billing.services.invoicing import billing_details
from billing.services.tax import tax_determination
from web.api.base_views import ETagViewSet, WholeTenantViewSet, needs, validated_body
from web.api.serializer_fields import StrictSerializer

LANGUAGES = [each.value for each in Language]


class BankAccountOut(serializers.Serializer[Any]):
    """Account to which the invoice is paid by bank transfer."""

    holder = serializers.CharField()
    iban = serializers.CharField()
    bic = serializers.CharField()
    bank = serializers.CharField()


class PartyOut(serializers.Serializer[Any]):
    """Customer or supplier on an invoice; older invoices name less of them."""

    name = serializers.CharField()
    street = serializers.CharField(default="")
    address_line_2 = serializers.CharField(default="")
    postcode = serializers.CharField(default="")
    city = serializers.CharField(default="")
    country = serializers.CharField(default="", help_text="ISO 3166, two letters.")
    vat_id = serializers.CharField(default="")
    email = serializers.CharField(default="")
    phone = serializers.CharField(default="", help_text="Of the supplier.")
    language = serializers.ChoiceField(choices=LANGUAGES, default="en", help_text="Of the customer's documents.")


@extend_schema_serializer(many=False)
class BillingDetailsOut(serializers.Serializer[Any]):
    """Customer and supplier of your next invoices, and the resulting tax treatment."""

    customer = PartyOut()
    supplier = PartyOut(allow_null=True)
    treatment = serializers.ChoiceField(choices=[each.value for each in TaxTreatment], allow_blank=True)
    treatment_in_words = serializers.CharField(allow_blank=True)
    po_number = serializers.CharField(allow_blank=True, help_text="Your own order number, stated on invoices.")
    bank_account = BankAccountOut(allow_null=True)
    emails_enabled = serializers.BooleanField(help_text="Whether invoices and payment updates are sent by e-mail.")


class BillingDetailsIn(StrictSerializer):
    name = serializers.CharField(max_length=MAX_LENGTH)
    street = serializers.CharField(max_length=MAX_LENGTH)
    address_line_2 = serializers.CharField(max_length=MAX_LENGTH, allow_blank=True, default="")
    postcode = serializers.CharField(max_length=20, allow_blank=True, default="")
    city = serializers.CharField(max_length=MAX_LENGTH)
    country = serializers.CharField(max_length=2, help_text="ISO 3166, two letters such as DE.")
    vat_id = serializers.CharField(
        max_length=2 * MAX_VAT_NUMBER_LENGTH,
        allow_blank=True,
        default="",
        help_text="Format and check digits are validated; spaces are ignored.",
    )
    email = serializers.CharField(max_length=254, allow_blank=True, default="")
    language = serializers.ChoiceField(choices=LANGUAGES, default="en", help_text="Of invoices and other documents.")
    po_number = serializers.CharField(
        max_length=MAX_PO_NUMBER_LENGTH, allow_blank=True, required=False, help_text="Unchanged if omitted."
    )
    emails_enabled = serializers.BooleanField(required=False, help_text="Unchanged if omitted.")


class BillingDetailsViewSet(WholeTenantViewSet):
    """Billing details of the whole tenant."""

    serializer_class = BillingDetailsOut
    pagination_class = None
    rows = BillingDetails.objects.all()
    actions_needed = needs("billing.read", "list") | needs("billing.write", "replace")

    @extend_schema(responses=BillingDetailsOut, filters=False)
    def list(self, request: Request) -> Response:
        """Return your details for the next invoice, with their ETag."""
        return self._details_response()

    @extend_schema(request=BillingDetailsIn, responses=BillingDetailsOut)
    def replace(self, request: Request) -> Response:
        """Replace your details; needs If-Match.

        Drafts follow at once, final invoices do not change.
        """
        wanted = validated_body(BillingDetailsIn, request)
        ETagViewSet.match(request, self._row(lock=True))
        kept = {name: wanted.pop(name, None) for name in ("emails_enabled", "po_number")}
        billing_details.set_billing_details(self.request.tenant, party=InvoiceParty(**wanted), **kept, **self.by)
        return self._details_response()

    def _row(self, *, lock: bool = False) -> BillingDetails:
        rows = self.get_queryset()
        found = (rows.select_for_update() if lock else rows).first()
        return found or BillingDetails(tenant=self.request.tenant, version=0)

    def _details_response(self) -> Response:
        tenant = self.request.tenant
        taxed = tax_determination.get_tax_status(tenant)
        body = {
            "customer": tax_determination.get_customer(tenant).as_dict(),
            "supplier": by.as_dict() if (by := tax_determination.get_supplier()) else None,
            "treatment": taxed.treatment.value,
            "treatment_in_words": tax.TREATMENT_TEXTS[taxed.treatment],
            "po_number": billing_details.po_number_of(tenant),
            "bank_account": bank.as_dict() if (bank := tax_determination.get_bank_account()) else None,
            "emails_enabled": billing_details.gets_invoice_emails(tenant),
        }
        return Response(BillingDetailsOut(body).data, headers={"ETag": f'"{self._row().version}"'})
