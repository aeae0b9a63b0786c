"""PATCH of invoices by operators: write off, make due again, cancel and issue again."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from billing.models import Invoice
from billing.services.cancellations import cancelled_invoices
from billing.services.payments import write_offs
from web.api.base_views import validated_body
from web.api.operators.changes import ChangingViewSet
from web.api.serializer_fields import StrictSerializer


class InvoiceChange(StrictSerializer):
    status = serializers.ChoiceField(
        choices=["uncollectible", "finalized", "void"],
        help_text="`uncollectible` writes off what is due, `finalized` makes it due again, `void` cancels the invoice"
        " by a credit note and opens its month, to issue it again once the month is approved.",
    )
    reason = serializers.CharField(max_length=100, help_text="Visible on the credit note, if there is one.")
    credits_again = serializers.BooleanField(
        default=True,
        help_text="With `void`: credit on the new invoice again what earlier credit notes credited. Those of"
        " corrections are credited again in any case.",
    )


class InvoiceChangeMixin(ChangingViewSet):
    """Changes of the state of an invoice."""

    area = "billing"

    @extend_schema(request=InvoiceChange)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Write an invoice off, make it due again, or cancel it and open its month."""
        invoice: Invoice = self.row_to_change()
        body: dict[str, Any] = validated_body(InvoiceChange, request)
        change = {"why": body["reason"], **self.by}
        if body["status"] == "uncollectible":
            write_offs.write_off_invoice(invoice, **change)
        elif body["status"] == "finalized":
            write_offs.undo_write_off(invoice, **change)
        else:
            cancelled_invoices.cancel_and_reopen(invoice, credits_again=body["credits_again"], **change)
        return self.changed(invoice)
