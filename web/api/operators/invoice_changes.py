"""PATCH of invoices by operators: write off, make due again, cancel and issue again."""

from typing import Any

from rest_framework import serializers

from billing.models import Invoice
from billing.services.cancellations import cancelled_invoices
from billing.services.payments import write_offs
from web.api.operators.base_views import CrossTenantViewSet, OperatorAct, require_field
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


class InvoiceChangeMixin(CrossTenantViewSet):
    """Changes of the state of an invoice."""

    area = "billing"

    @OperatorAct(InvoiceChange)
    def partial_update(self, invoice: Invoice, body: dict[str, Any]) -> Invoice:
        """Write an invoice off, make it due again, or cancel it and open its month."""
        status, change = require_field(body, "status"), {"why": require_field(body, "reason"), **self.by}
        if status == "uncollectible":
            write_offs.write_off_invoice(invoice, **change)
        elif status == "finalized":
            write_offs.undo_write_off(invoice, **change)
        else:
            again = body.get("credits_again", True)
            cancelled_invoices.cancel_and_reopen(invoice, credits_again=again, **change)
        return invoice
