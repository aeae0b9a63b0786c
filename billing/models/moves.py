"""What every move of money through a gateway has: payments, top-ups, refunds. Its id is its key there.

A stuck one is not settled: nobody knows for certain that no money moved. It waits until a person has it asked for
again, with the same key, and until then no other is begun in its place. Once settled it never changes.
"""

from django.db import models
from django.db.models import Q

from tenants.models.tenants import TenantOwned

LONGEST_REASON = 200
UNSETTLED = ("pending", "stuck")


class PaymentStatus(models.TextChoices):
    PENDING = "pending"
    STUCK = "stuck"
    SUCCEEDED = "succeeded"
    DECLINED = "declined"


class Move(TenantOwned):
    status = models.CharField(max_length=9, choices=PaymentStatus, default=PaymentStatus.PENDING)
    minor = models.BigIntegerField()
    currency = models.CharField(max_length=3)
    gateway = models.CharField(max_length=40)  # the only one that may ever be asked about it
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
    # Operators say that nothing was taken, and why; the gateway is to see that nothing ever is.
    untaken = models.CharField(max_length=LONGEST_REASON, blank=True, default="", db_default="")

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.pk} ({self.status})"


def promises(name: str) -> list[models.CheckConstraint]:
    """Return what PostgreSQL keeps for every kind of move."""
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
