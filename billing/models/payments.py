"""Attempts to collect an invoice."""

from django.db import models
from django.db.models import Q

from billing.models.default_ids import ID_LENGTH, payment_id
from billing.models.gateway_transactions import UNSETTLED, GatewayTransaction, gateway_transaction_constraints
from billing.models.invoices import Invoice


class Payment(GatewayTransaction):
    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=payment_id)
    invoice = models.ForeignKey(Invoice, on_delete=models.PROTECT, related_name="payments")
    automatic = models.BooleanField(default=False)  # not started by a person

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["invoice"], condition=Q(status__in=[*UNSETTLED, "succeeded"]), name="one_payment_per_invoice"
            ),
            *gateway_transaction_constraints("payment"),
            models.CheckConstraint(
                condition=Q(status="stuck", stuck_at__isnull=False) | Q(~Q(status="stuck"), stuck_at__isnull=True),
                name="payment_stuck_since",
            ),
        ]
        indexes = [
            models.Index(fields=["due_at"], name="payment_waits", condition=Q(status="pending")),
            models.Index(fields=["stuck_at"], name="payment_stuck", condition=Q(status="stuck")),
        ]
