"""Ceilings in money on project nodes, month by month, and what leases have set aside of them.

What a month has taken and spent is the sum of its parts: PostgreSQL adds it up as parts change (migration 0016).
Amounts that end in `_num` are exact, over money.EXACT_PER_UNIT.
"""

from django.db import models
from django.db.models import F, Q

from billing.models.keys import ID_LENGTH, budget_id, hold_id
from billing.models.periods import BillingPeriod
from broker.models import Lease
from tenants.models import Project
from tenants.models.tenants import TenantOwned


class Budget(TenantOwned):
    """What a project and all below it may cost in a month; a lease sets its part aside before it queues."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=budget_id)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    currency = models.CharField(max_length=3)
    limit_minor = models.BigIntegerField()
    version = models.PositiveIntegerField(default=1)
    made_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "project"], name="budget_once_per_node"),
            models.CheckConstraint(condition=Q(limit_minor__gte=0), name="budget_not_negative"),
        ]

    def __str__(self) -> str:
        return self.id


class BudgetMonth(TenantOwned):
    """One month of a budget. What ended in it before there was a budget stands in `base_num`."""

    id = models.BigAutoField(primary_key=True)
    budget = models.ForeignKey(Budget, on_delete=models.CASCADE, related_name="months")
    period = models.ForeignKey(BillingPeriod, on_delete=models.PROTECT, related_name="+")
    base_num = models.DecimalField(max_digits=38, decimal_places=0, default=0)
    taken_num = models.DecimalField(max_digits=38, decimal_places=0, default=0)  # of it, `base` and all parts
    spent_num = models.DecimalField(max_digits=38, decimal_places=0, default=0)  # of that, what is charged

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "budget", "period"], name="budget_month_once"),
            models.CheckConstraint(
                condition=Q(base_num__gte=0, spent_num__gte=F("base_num"), taken_num__gte=F("spent_num")),
                name="budget_month_adds_up",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.budget_id} {self.period_id}"


class Hold(TenantOwned):
    """What a lease has set aside, from before it queued until all that it was active for is charged."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=hold_id)
    lease = models.OneToOneField(Lease, on_delete=models.PROTECT, related_name="+")
    currency = models.CharField(max_length=3)
    opened_at = models.DateTimeField()
    looked_at = models.DateTimeField()
    seq = models.PositiveIntegerField(default=0)  # the step of the lease that was seen then
    settled_at = models.DateTimeField(null=True)
    covers_until = models.DateTimeField(null=True)  # by its tenant's wallet; None where that was not asked

    class Meta:
        indexes = [
            models.Index(fields=["looked_at"], name="hold_open", condition=Q(settled_at__isnull=True)),
        ]

    def __str__(self) -> str:
        return self.id


class HoldPart(TenantOwned):
    """What a lease has set aside of one month of one budget, and what of that is charged."""

    id = models.BigAutoField(primary_key=True)
    hold = models.ForeignKey(Hold, on_delete=models.PROTECT, related_name="parts")
    month = models.ForeignKey(BudgetMonth, on_delete=models.CASCADE, related_name="parts")
    num = models.DecimalField(max_digits=38, decimal_places=0)
    spent_num = models.DecimalField(max_digits=38, decimal_places=0, default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "hold", "month"], name="hold_part_once"),
            models.CheckConstraint(
                condition=Q(spent_num__gte=0, num__gte=F("spent_num")), name="hold_part_covers"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.hold_id} {self.month_id}"
