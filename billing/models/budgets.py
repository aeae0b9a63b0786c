"""Ceilings in money on project nodes, month by month, and what leases have set aside of them.

What a month has taken and spent is the sum of its parts: PostgreSQL adds it up as parts change (migration 0016).
Amounts that end in `_num` are exact, over money.EXACT_PER_UNIT.
"""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from billing.domain.watching import USUAL, USUAL_FORECAST, Measure, StopOf, Terms, ceiling
from billing.models.keys import ID_LENGTH, alert_id, budget_id, budget_stop_id, hold_id
from billing.models.periods import BillingPeriod
from broker.models import Lease
from tenants.models import Project
from tenants.models.tenants import TenantOwned

LONGEST_TROUBLE = 300


def usual() -> list[int]:
    return list(USUAL)


def usual_forecast() -> list[int]:
    return list(USUAL_FORECAST)


class Budget(TenantOwned):
    """What a project and all below it may cost in a month; a lease sets its part aside before it queues."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=budget_id)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    currency = models.CharField(max_length=3)
    limit_minor = models.BigIntegerField()
    version = models.PositiveIntegerField(default=1)
    made_at = models.DateTimeField()
    # Whole percents of the limit, in order; what happens at them is in domain/watching.py.
    thresholds = ArrayField(models.PositiveSmallIntegerField(), default=usual, db_default=list(USUAL))
    forecast_thresholds = ArrayField(
        models.PositiveSmallIntegerField(), default=usual_forecast, db_default=list(USUAL_FORECAST)
    )
    stop_new_at = models.PositiveSmallIntegerField(null=True, default=100, db_default=100)
    stop_idle_at = models.PositiveSmallIntegerField(null=True)
    stop_all_at = models.PositiveSmallIntegerField(null=True)
    grace_minutes = models.PositiveSmallIntegerField(default=60, db_default=60)
    looked_at = models.DateTimeField(null=True)  # after, last: whose turn was longest ago comes first

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "project"], name="budget_once_per_node"),
            models.CheckConstraint(condition=Q(limit_minor__gte=0), name="budget_not_negative"),
        ]

    def __str__(self) -> str:
        return self.id

    @property
    def terms(self) -> Terms:
        return Terms(
            thresholds=tuple(self.thresholds),
            forecast_thresholds=tuple(self.forecast_thresholds),
            stop_new_at=self.stop_new_at,
            stop_idle_at=self.stop_idle_at,
            stop_all_at=self.stop_all_at,
            grace_minutes=self.grace_minutes,
        )

    @property
    def ceiling_minor(self) -> int | None:
        """Up to what leases begin, in minor units; None where they begin beyond the limit, too."""
        return ceiling(self.limit_minor, self.stop_new_at)


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


class BudgetAlert(TenantOwned):
    """A share of a budget that was reached in a month, told of once; raising the limit lifts what is no longer so."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=alert_id)
    budget = models.ForeignKey(Budget, on_delete=models.CASCADE, related_name="alerts")
    period = models.ForeignKey(BillingPeriod, on_delete=models.PROTECT, related_name="+")
    measure = models.CharField(max_length=8)
    percent = models.PositiveSmallIntegerField()
    minor = models.BigIntegerField()  # what was spent, or forecast
    limit_minor = models.BigIntegerField()  # as it was then
    at = models.DateTimeField()
    lifted_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "budget", "period", "measure", "percent"],
                condition=Q(lifted_at__isnull=True),
                name="budget_alert_once",
            ),
            models.CheckConstraint(
                condition=Q(measure__in=[each.value for each in Measure]), name="budget_alert_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.budget_id} {self.measure} {self.percent} %"


class BudgetStop(TenantOwned):
    """That what runs below a budget is stopped from a moment on, told beforehand; lifted when the limit is raised."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=budget_stop_id)
    budget = models.ForeignKey(Budget, on_delete=models.CASCADE, related_name="stops")
    period = models.ForeignKey(BillingPeriod, on_delete=models.PROTECT, related_name="+")
    what = models.CharField(max_length=4)
    percent = models.PositiveSmallIntegerField()
    minor = models.BigIntegerField()  # what was spent then
    limit_minor = models.BigIntegerField()
    told_at = models.DateTimeField()
    due_at = models.DateTimeField()
    done_at = models.DateTimeField(null=True)  # of all: what is idle is looked for until the month ends
    ended = models.PositiveIntegerField(default=0)  # leases
    lifted_at = models.DateTimeField(null=True)
    looked_at = models.DateTimeField(null=True)  # by whoever makes stops, last
    trouble = models.CharField(max_length=LONGEST_TROUBLE, blank=True, default="", db_default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "budget", "period", "what"],
                condition=Q(lifted_at__isnull=True),
                name="budget_stop_once",
            ),
            models.CheckConstraint(
                condition=Q(what__in=[each.value for each in StopOf]), name="budget_stop_known"
            ),
            models.CheckConstraint(condition=Q(due_at__gte=F("told_at")), name="budget_stop_told_first"),
        ]
        indexes = [
            models.Index(
                fields=["due_at"],
                name="budget_stop_due",
                condition=Q(lifted_at__isnull=True, done_at__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.budget_id} {self.what}"
