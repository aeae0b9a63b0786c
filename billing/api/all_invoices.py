"""Invoices, their lines and credit notes of all tenants, for operators."""

from typing import Any, ClassVar

from django.db.models import QuerySet, Sum
from django.http import Http404
from django.http.response import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from billing.api import papers
from billing.api.amounts import MoneyOut, money
from billing.api.credit_notes import CreditNoteOut, with_lines
from billing.api.invoices import InvoiceOut, LineOut, with_taxes
from billing.models import CreditNote, Invoice, InvoiceLine, InvoiceStatus
from billing.services.exports import sheets
from billing.services.papers import keeping
from broker.api.all_leases import Named
from tenants.api.filters import Filter
from tenants.api.operators import AllTenants
from tenants.services import walls


class InvoiceSeenOut(InvoiceOut):
    """A month, and whose."""

    tenant = Named()

    class Meta(InvoiceOut.Meta):
        fields = ("tenant", *InvoiceOut.Meta.fields)  # type: ignore[assignment]


class LineSeenOut(LineOut):
    """A line, and what of it was given back."""

    credited = serializers.SerializerMethodField()

    class Meta(LineOut.Meta):
        fields = (*LineOut.Meta.fields, "credited")  # type: ignore[assignment]

    @extend_schema(responses=MoneyOut)
    def get_credited(self, line: Any) -> dict[str, str]:
        return money(line.credited, line.invoice.currency)


class OpsInvoices(AllTenants):
    """Invoices of all tenants, drafts too."""

    serializer_class, rows, visit = InvoiceSeenOut, Invoice, "invoices"
    sorts: ClassVar[tuple[str, ...]] = ("-id", "id")
    filters = {
        "tenant": Filter("tenant_id"),
        "status": Filter("status", choices=tuple(InvoiceStatus.values)),
        "month": Filter("period__label"),
    }

    def get_queryset(self) -> QuerySet[Invoice]:
        return with_taxes(Invoice.objects.select_related("tenant", "period"))

    @extend_schema(responses=LineSeenOut(many=True), filters=False)
    @action(detail=True)
    def lines(self, request: Request, pk: str) -> Response:
        """Return its lines, by number."""
        self.sorts = ("n",)  # type: ignore[misc]  # of this action alone
        with walls.as_staff():
            found = InvoiceLine.objects.filter(invoice=self.get_object()).select_related("invoice")
            page = self.paginate_queryset(found.annotate(credited=Sum("credits__minor", default=0))) or []
            return self.get_paginated_response(LineSeenOut(page, many=True).data)

    @extend_schema(responses=papers.CSV, filters=False)
    @action(
        detail=True,
        url_path="exports/<str:kind>",
        pagination_class=None,
        renderer_classes=papers.RENDERERS,
    )
    def exports(self, request: Request, pk: str, kind: str) -> HttpResponseBase:
        """Return its lines, its charges or its charges in the shape of FOCUS as CSV, the same that its tenant gets."""
        if kind not in sheets.KINDS:
            raise Http404
        with walls.as_staff():
            found = self.get_object()
        with walls.as_tenant(found.tenant_id):
            return papers.sheet(sheets.file_name(found, kind), sheets.text(found, kind))

    @extend_schema(responses=papers.PDF, filters=False)
    @action(detail=True, pagination_class=None, renderer_classes=papers.RENDERERS)
    def pdf(self, request: Request, pk: str) -> HttpResponseBase:
        """Return the invoice as PDF, the same that its tenant gets."""
        with walls.as_staff():
            return papers.sent(request, keeping.invoice_paper(self.get_object(), now=self.now))


class CreditNoteSeenOut(CreditNoteOut):
    """A credit note, and whose."""

    tenant = Named()

    class Meta(CreditNoteOut.Meta):
        fields = ("tenant", *CreditNoteOut.Meta.fields)  # type: ignore[assignment]


class OpsCreditNotes(AllTenants):
    """Credit notes of all tenants."""

    serializer_class, rows, visit = CreditNoteSeenOut, CreditNote, "credit-notes"
    sorts = ("-id", "id")
    filters = {"tenant": Filter("tenant_id"), "invoice": Filter("invoice_id")}

    def get_queryset(self) -> QuerySet[CreditNote]:
        return with_lines(CreditNote.objects.select_related("tenant"))

    @extend_schema(responses=papers.PDF, filters=False)
    @action(detail=True, pagination_class=None, renderer_classes=papers.RENDERERS)
    def pdf(self, request: Request, pk: str) -> HttpResponseBase:
        """Return the credit note as PDF, the same that its tenant gets."""
        with walls.as_staff():
            return papers.sent(request, keeping.credit_note_paper(self.get_object(), now=self.now))
