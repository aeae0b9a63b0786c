"""Gateway transactions: payments of invoices, refunds, and top-ups of wallets.

The row's id is its idempotency key at the gateway. A stuck transaction is not settled, because nobody
knows for certain that no money moved. It waits until a person has it retried with the same key, and
until then no other is started in its place. Once settled it never changes.
"""

from django.db import models
from django.db.models import Q

from billing.models.default_ids import ID_LENGTH, payment_id, refund_id, topup_id
from billing.models.invoices import Invoice
from tenants.models.tenants import TenantOwned

MAX_REASON_LENGTH = 200
UNSETTLED = ("pending", "stuck")


class PaymentStatus(models.TextChoices):
    PENDING = "pending"
    STUCK = "stuck"
    SUCCEEDED = "succeeded"
    DECLINED = "declined"


class GatewayTransaction(TenantOwned):
    """Common fields of payments, refunds and top-ups."""

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


class Payment(GatewayTransaction):
    """An attempt to collect an invoice."""

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


class Refund(GatewayTransaction):
    """A refund that an operator sends from a tenant's balance to the payment card.

    PaymentRefund, in contrast, is any refund that the gateway reports, whoever made it.
    """

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


class TopUp(GatewayTransaction):
    """Money that a tenant adds to its wallet."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=topup_id)
    window = models.BigIntegerField(null=True)  # for automatic top-ups: at most one per time window
    opened_by = models.CharField(max_length=ID_LENGTH)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant"], condition=Q(status__in=UNSETTLED), name="one_topup_at_a_time"),
            models.UniqueConstraint(fields=["tenant", "window"], name="one_topup_a_window"),
            *gateway_transaction_constraints("topup"),
        ]
        indexes = [
            models.Index(fields=["due_at"], name="topup_waits", condition=Q(status="pending")),
            models.Index(fields=["opened_at"], name="topup_stuck", condition=Q(status="stuck")),
        ]

    @property
    def automatic(self) -> bool:
        return self.window is not None


class AutoTopUp(TenantOwned):
    """The automatic top-up of a wallet: threshold and amount; it stops after a decline."""

    id = models.BigAutoField(primary_key=True)
    threshold_minor = models.BigIntegerField()
    minor = models.BigIntegerField()
    set_at = models.DateTimeField()
    stopped_at = models.DateTimeField(null=True)
    why = models.CharField(max_length=MAX_REASON_LENGTH, blank=True, default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant"], name="auto_topup_once_a_tenant"),
            models.CheckConstraint(condition=Q(threshold_minor__gt=0, minor__gt=0), name="auto_topup_of_something"),
        ]

    def __str__(self) -> str:
        return f"top-up of {self.tenant_id} by itself"
