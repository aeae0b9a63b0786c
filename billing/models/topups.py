"""Money that a tenant puts into its wallet. A top-up's id is its key at the gateway; once settled it never changes.

A stuck one is not settled: nobody knows for certain that no money moved. It waits until a person has it asked again,
with the same key, and until then no other is begun.
"""

from django.db import models
from django.db.models import Q

from billing.models.keys import ID_LENGTH, topup_id
from billing.models.payments import LONGEST_REASON, UNSETTLED, PaymentStatus
from tenants.models.tenants import TenantOwned


class TopUp(TenantOwned):
    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=topup_id)
    status = models.CharField(max_length=9, choices=PaymentStatus, default=PaymentStatus.PENDING)
    minor = models.BigIntegerField()
    currency = models.CharField(max_length=3)
    gateway = models.CharField(max_length=40)  # the only one that may ever be asked about it
    window = models.BigIntegerField(
        null=True
    )  # of an automatic one: in each stretch of time there is one at most
    opened_at = models.DateTimeField()
    opened_by = models.CharField(max_length=ID_LENGTH)
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
    fell = models.PositiveIntegerField(default=0)
    trouble = models.CharField(max_length=LONGEST_REASON, blank=True, default="")  # the last silence

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant"], condition=Q(status__in=UNSETTLED), name="one_topup_at_a_time"
            ),
            models.UniqueConstraint(fields=["tenant", "window"], name="one_topup_a_window"),
            models.CheckConstraint(condition=Q(minor__gt=0), name="topup_of_something"),
            models.CheckConstraint(condition=Q(status__in=PaymentStatus.values), name="topup_status_known"),
            models.CheckConstraint(
                condition=Q(status="pending", settled_at__isnull=True, due_at__isnull=False)
                | Q(status="stuck", settled_at__isnull=True, due_at__isnull=True)
                | Q(~Q(status__in=UNSETTLED), settled_at__isnull=False, due_at__isnull=True),
                name="topup_waits_or_is_settled",
            ),
        ]
        indexes = [models.Index(fields=["due_at"], name="topup_waits", condition=Q(status="pending"))]

    def __str__(self) -> str:
        return f"{self.id} ({self.status})"

    @property
    def automatic(self) -> bool:
        return self.window is not None


class AutoTopUp(TenantOwned):
    """Below how much a wallet is topped up by itself, and by how much; stopped once that was declined."""

    id = models.BigAutoField(primary_key=True)
    threshold_minor = models.BigIntegerField()
    minor = models.BigIntegerField()
    set_at = models.DateTimeField()
    stopped_at = models.DateTimeField(null=True)
    why = models.CharField(max_length=LONGEST_REASON, blank=True, default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant"], name="auto_topup_once_a_tenant"),
            models.CheckConstraint(
                condition=Q(threshold_minor__gt=0, minor__gt=0), name="auto_topup_of_something"
            ),
        ]

    def __str__(self) -> str:
        return f"top-up of {self.tenant_id} by itself"
