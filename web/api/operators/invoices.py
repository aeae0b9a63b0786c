"""Operators' API of all tenants' invoices, which they credit."""

from typing import Any

from django.db.models import Sum
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers

from billing.models import CreditNote, Invoice
from billing.services.invoicing import credit_notes
from tenants.services.errors import InvalidValue
from web.api import documents
from web.api.amounts import AmountField, require_amount
from web.api.credit_notes import CreditNoteRows
from web.api.invoices import InvoiceLineOut, InvoiceOut, InvoiceRows
from web.api.operators.base_views import TENANT_FILTER, CrossTenantViewSet, OperatorAct, ReasonIn, TenantNamed
from web.api.operators.credit_notes import OperatorCreditNoteOut
from web.api.operators.invoice_changes import InvoiceChangeMixin
from web.api.serializer_fields import StrictSerializer

MAX_AMOUNT_LENGTH, MAX_LINES, MAX_LINE_NUMBER = 20, 1000, 10**9


class OperatorInvoiceOut(TenantNamed, InvoiceOut):
    """An invoice and its tenant."""


class OperatorInvoiceLineOut(InvoiceLineOut):
    """An invoice line, and what of it was credited."""

    credited = AmountField("credited", of="invoice")

    class Meta(InvoiceLineOut.Meta):
        fields = (*InvoiceLineOut.Meta.fields, "credited")  # type: ignore[assignment]


class LineCreditIn(StrictSerializer):
    line = serializers.IntegerField(min_value=1, max_value=MAX_LINE_NUMBER, help_text="Line number.")
    amount = serializers.CharField(
        max_length=MAX_AMOUNT_LENGTH, help_text="Amount to credit before tax, for example 12.50."
    )


class CreditNoteCreate(ReasonIn):
    lines = serializers.ListField(
        child=LineCreditIn(),
        required=False,
        min_length=1,
        max_length=MAX_LINES,
        help_text="Amounts per line. Default: the rest of the invoice.",
    )
    credited = serializers.CharField(
        max_length=MAX_AMOUNT_LENGTH,
        help_text="What you saw as credited so far, before tax; prevents crediting twice.",
    )


@extend_schema_view(
    lines=extend_schema(
        responses=OperatorInvoiceLineOut(many=True), filters=False, description="Return its lines, by number."
    ),
    exports=extend_schema(
        responses=documents.CSV,
        filters=False,
        description="Return its lines, charges or FOCUS charges as CSV; the same as its tenant gets.",
    ),
    xrechnung=extend_schema(
        responses=documents.XML,
        filters=False,
        description="Return the invoice as XRechnung; the same as its tenant gets.",
    ),
    pdf=extend_schema(
        responses=documents.PDF, filters=False, description="Return the invoice as PDF; the same as its tenant gets."
    ),
)
class OperatorInvoiceViewSet(InvoiceChangeMixin, InvoiceRows, CrossTenantViewSet):
    """Invoices of all tenants, including drafts."""

    area = "billing"
    serializer_class, audit_action = OperatorInvoiceOut, "invoices"
    filters = TENANT_FILTER | InvoiceRows.filters
    line_serializer = OperatorInvoiceLineOut
    line_rows = InvoiceRows.line_rows.annotate(credited=Sum("credits__minor", default=0))

    @OperatorAct(
        CreditNoteCreate,
        answer=OperatorCreditNoteOut,
        rows=CreditNoteRows.rows,
        creates=True,
        description=(
            "Credit amounts of lines of a final invoice including tax, or the rest of the invoice. It cannot be "
            "revoked. 409 for a draft or void invoice, while a payment is in progress, and if more was credited "
            "than `credited`."
        ),
    )
    def credit_note(self, invoice: Invoice, body: dict[str, Any]) -> CreditNote:
        """Issue a credit note."""
        return credit_notes.issue_credit_note(
            invoice,
            wanted=_amounts_by_line(body["lines"], invoice.currency) if "lines" in body else None,
            seen=require_amount("credited", body["credited"], invoice.currency),
            why=body["reason"],
            **self.by,
        )


def _amounts_by_line(lines: list[dict[str, Any]], currency: str) -> dict[int, int]:
    """Return amounts by line number; raise InvalidValue for a line named twice."""
    found = dict[int, int]()
    for line in lines:
        if line["line"] in found:
            raise InvalidValue("lines", f"Line {line['line']} is listed twice.", fix="List each line once.")
        found[line["line"]] = require_amount("lines", line["amount"], currency)
    return found
