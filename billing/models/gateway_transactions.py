"""Common fields of gateway transactions: payments, top-ups, refunds.

The row's id is its idempotency key at the gateway. A stuck transaction is not settled, because nobody
knows for certain that no money moved. It waits until a person has it retried with the same key, and
until then no other is started in its place. Once settled it never changes.
"""

from django.db import models
from django.db.models import Q

from tenants.models.tenants import TenantOwned

MAX_REASON_LENGTH = 200
UNSETTLED = ("pending", "stuck")


class PaymentStatus(models.TextChoices):
    PENDING = "pending"
    STUCK = "stuck"
    SUCCEEDED = "succeeded"
    DECLINED = "declined"


class GatewayTransaction(TenantOwned):
    status = models.CharField(max_length=9, choices=PaymentStatus, default=PaymentStatus.PENDING)
    minor = models.BigIntegerField()
    currency = models.CharField(max_length=3)
    gateway = models.CharField(max_length=40)  # the only gateway that may ever be called for it
    opened_at = models.DateTimeField()
    settled_at = models.DateTimeField(null=True)
    reference = models.CharField(max_length=120, blank=True, default="")  # the gateway's, once succeeded
    code = models.CharField(max_length=60, blank=True, default="")  # why it was declined or is stuck, as a code
    reason = models.CharField(max_length=MAX_REASON_LENGTH, blank=True, default="")  # the same for people
    # Work state: the row is the queue.
    due_at = models.DateTimeField(null=True)
    claimed_until = models.DateTimeField(null=True)
    attempts = models.PositiveIntegerField(default=0)
    # Of these, the latest consecutive unexpected failures. Older processes insert without it.
    consecutive_failures = models.PositiveIntegerField(default=0, db_default=0)
    last_error = models.CharField(max_length=MAX_REASON_LENGTH, blank=True, default="")  # the last missing answer
    stuck_at = models.DateTimeField(null=True)
    # Why operators marked it as failed; the gateway must then make sure that no money moves.
    mark_failed_reason = models.CharField(max_length=MAX_REASON_LENGTH, blank=True, default="", db_default="")

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.pk} ({self.status})"


def gateway_transaction_constraints(name: str) -> list[models.CheckConstraint]:
    """Return the check constraints of every kind of gateway transaction."""
    return [
        models.CheckConstraint(condition=Q(minor__gt=0), name=f"{name}_of_something"),
        models.CheckConstraint(condition=Q(status__in=PaymentStatus.values), name=f"{name}_status_known"),
        models.CheckConstraint(
            condition=Q(status="pending", settled_at__isnull=True, due_at__isnull=False)
            | Q(status="stuck", settled_at__isnull=True, due_at__isnull=True)
            | Q(~Q(status__in=UNSETTLED), settled_at__isnull=False, due_at__isnull=True),
            name=f"{name}_waits_or_is_settled",
        ),
    ]
