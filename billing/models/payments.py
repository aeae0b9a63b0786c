"""One attempt to collect an invoice. Its id is its key at the gateway; once settled it never changes.

A stuck one is not settled: nobody knows for certain that no money moved. It waits until a person has it asked again,
with the same key, and until then no other payment of the invoice is begun.
"""

from django.db import models
from django.db.models import Q

from billing.models.invoices import Invoice
from billing.models.keys import ID_LENGTH, payment_id
from tenants.models.tenants import TenantOwned

LONGEST_REASON = 200
UNSETTLED = ("pending", "stuck")


class PaymentStatus(models.TextChoices):
    PENDING = "pending"
    STUCK = "stuck"
    SUCCEEDED = "succeeded"
    DECLINED = "declined"


class Payment(TenantOwned):
    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=payment_id)
    invoice = models.ForeignKey(Invoice, on_delete=models.PROTECT, related_name="payments")
    status = models.CharField(max_length=9, choices=PaymentStatus, default=PaymentStatus.PENDING)
    minor = models.BigIntegerField()  # all that was due on the invoice
    currency = models.CharField(max_length=3)
    gateway = models.CharField(max_length=40)  # the only one that may ever be asked about it
    automatic = models.BooleanField(default=False)  # nobody pressed a button
    opened_at = models.DateTimeField()
    settled_at = models.DateTimeField(null=True)
    reference = models.CharField(max_length=120, blank=True, default="")  # the gateway's, once it succeeded
    code = models.CharField(
        max_length=60, blank=True, default=""
    )  # why it was declined or is stuck, for programs
    reason = models.CharField(max_length=LONGEST_REASON, blank=True, default="")  # and for people
    # How it is worked on. The row is the queue.
    due_at = models.DateTimeField(null=True)
    claimed_until = models.DateTimeField(null=True)
    tries = models.PositiveIntegerField(default=0)
    # Of these, the latest in a row that ended as nobody foresaw. Older processes insert without it.
    fell = models.PositiveIntegerField(default=0, db_default=0)
    trouble = models.CharField(max_length=LONGEST_REASON, blank=True, default="")  # the last silence
    stuck_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["invoice"],
                condition=Q(status__in=[*UNSETTLED, "succeeded"]),
                name="one_payment_per_invoice",
            ),
            models.CheckConstraint(condition=Q(minor__gt=0), name="payment_of_something"),
            models.CheckConstraint(condition=Q(status__in=PaymentStatus.values), name="payment_status_known"),
            models.CheckConstraint(
                condition=Q(status="pending", settled_at__isnull=True, due_at__isnull=False)
                | Q(status="stuck", settled_at__isnull=True, due_at__isnull=True)
                | Q(~Q(status__in=UNSETTLED), settled_at__isnull=False, due_at__isnull=True),
                name="payment_waits_or_is_settled",
            ),
            models.CheckConstraint(
                condition=Q(status="stuck", stuck_at__isnull=False)
                | Q(~Q(status="stuck"), stuck_at__isnull=True),
                name="payment_stuck_since",
            ),
        ]
        indexes = [
            models.Index(fields=["due_at"], name="payment_waits", condition=Q(status="pending")),
            models.Index(fields=["stuck_at"], name="payment_stuck", condition=Q(status="stuck")),
        ]

    def __str__(self) -> str:
        return f"{self.id} ({self.status})"
