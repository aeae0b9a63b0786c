"""Money of a payment that operators send back to the card that it came from, out of the tenant's balance.

What a gateway tells of refunds, whoever made them, is PaymentRefund; this is ours, asked for here.
"""

from django.db import models
from django.db.models import Q

from billing.models.keys import ID_LENGTH, refund_id
from billing.models.moves import LONGEST_REASON, UNSETTLED, Move, promises
from billing.models.payments import Payment


class Refund(Move):
    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=refund_id)
    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, related_name="sent_back")
    why = models.CharField(max_length=LONGEST_REASON)
    opened_by = models.CharField(max_length=ID_LENGTH)
    returned_at = models.DateTimeField(null=True)  # the bank did not take it after all, once it had succeeded

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["payment"], condition=Q(status__in=UNSETTLED), name="one_refund_at_a_time"
            ),
            *promises("refund"),
            models.CheckConstraint(
                condition=Q(returned_at__isnull=True) | Q(status="succeeded"),
                name="refund_returned_after_success",
            ),
        ]
        indexes = [
            models.Index(fields=["due_at"], name="refund_waits", condition=Q(status="pending")),
            models.Index(fields=["opened_at"], name="refund_stuck", condition=Q(status="stuck")),
        ]
