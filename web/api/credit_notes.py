"""API of credit notes of final invoices."""

from django.db.models import Prefetch
from django.http.response import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request

from billing.models import CreditNote, CreditNoteLine
from billing.services.documents import document_store
from web.api import documents
from web.api.amounts import AmountField
from web.api.base_views import RowViewSet, WholeTenantViewSet, needs
from web.http.filters import QueryFilter


class CreditNoteLineOut(serializers.ModelSerializer[CreditNoteLine]):
    """Credit on one line of the invoice."""

    line = serializers.IntegerField(source="line.n", help_text="Line number on the invoice.")
    amount = AmountField(of="credit_note")
    tax = AmountField("tax_minor", of="credit_note", help_text="Credited tax, not included in the amount.")

    class Meta:
        model = CreditNoteLine
        fields = ("line", "amount", "tax")


class CreditNoteOut(serializers.ModelSerializer[CreditNote]):
    """A credit note reduces what is owed of an invoice; it never changes."""

    invoice = serializers.CharField(source="invoice_id")
    number = serializers.CharField(source="__str__")
    total = AmountField("total")
    tax = AmountField("tax", help_text="Included tax.")
    reduced_due = AmountField("reduced_due", help_text="Part deducted from the amount due.")
    to_balance = AmountField(
        "to_balance", help_text="Part added to the balance, which pays the next final invoice first."
    )
    to_grants = AmountField("to_grants", help_text="Part returned to credits; money is returned to the balance first.")
    lines = CreditNoteLineOut(many=True)

    class Meta:
        model = CreditNote
        fields = ("id", "number", "invoice", "reason", "total", "tax", "reduced_due", "to_balance", "to_grants",
                  "lines", "issued_at")  # fmt: skip


class CreditNoteRows(RowViewSet):
    """Credit notes, as tenants and operators list them."""

    rows = CreditNote.objects.select_related("tenant").prefetch_related(
        Prefetch("lines", CreditNoteLine.objects.select_related("line", "credit_note").order_by("line__n"))
    )
    filters = {"invoice": QueryFilter("invoice_id")}
    action_parameters = {"xrechnung": frozenset({"profile"})}

    @extend_schema(responses=documents.PDF, filters=False)
    @action(detail=True, pagination_class=None, renderer_classes=documents.RENDERERS)
    def pdf(self, request: Request, pk: str) -> HttpResponseBase:
        """Return the credit note as PDF; its bytes never change."""
        with self.read_scope():
            return documents.document_response(request, document_store.credit_note_pdf(self.get_object(), now=self.now))

    @extend_schema(responses=documents.XML, parameters=[documents.PROFILE], filters=False)
    @action(detail=True, pagination_class=None, renderer_classes=documents.RENDERERS)
    def xrechnung(self, request: Request, pk: str) -> HttpResponseBase:
        """Return the credit note as XRechnung (syntax CII) or Factur-X.

        Also for papers from before PDFs contained one; a stored PDF never changes. 409 if supplier or customer lack
        required details.
        """
        with self.read_scope():
            found = self.get_object()
        return documents.e_invoice_response(request, found)


class CreditNoteViewSet(CreditNoteRows, ListModelMixin, RetrieveModelMixin, WholeTenantViewSet):
    """Credit notes of the whole tenant, which operators issue."""

    serializer_class = CreditNoteOut
    actions_needed = needs("billing.read", "list", "retrieve", "pdf", "xrechnung")
