"""Refunds that operators send from a tenant's balance to the payment card.

PaymentRefund, in contrast, is any refund that the gateway reports, whoever made it.
"""

from django.db import models
from django.db.models import Q

from billing.models.default_ids import ID_LENGTH, refund_id
from billing.models.gateway_transactions import (
    MAX_REASON_LENGTH,
    UNSETTLED,
    GatewayTransaction,
    gateway_transaction_constraints,
)
from billing.models.payments import Payment


class Refund(GatewayTransaction):
    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=refund_id)
    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, related_name="sent_back")
    why = models.CharField(max_length=MAX_REASON_LENGTH)
    opened_by = models.CharField(max_length=ID_LENGTH)
    returned_at = models.DateTimeField(null=True)  # the bank rejected it after it had succeeded

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["payment"], condition=Q(status__in=UNSETTLED), name="one_refund_at_a_time"),
            *gateway_transaction_constraints("refund"),
            models.CheckConstraint(
                condition=Q(returned_at__isnull=True) | Q(status="succeeded"), name="refund_returned_after_success"
            ),
        ]
        indexes = [
            models.Index(fields=["due_at"], name="refund_waits", condition=Q(status="pending")),
            models.Index(fields=["opened_at"], name="refund_stuck", condition=Q(status="stuck")),
        ]
