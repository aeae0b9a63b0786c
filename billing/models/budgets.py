"""Budgets of projects, their months, the holds of leases, and budget alerts and stops.

What is held and spent in a month is the sum of its parts, which PostgreSQL adds up as parts change
(triggers_budgets.sql). Amounts that end in `_num` are exact, over money.EXACT_PER_UNIT.
"""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from billing.domain.budgets import (
    DEFAULT_FORECAST_THRESHOLDS,
    DEFAULT_THRESHOLDS,
    BudgetMeasure,
    BudgetTerms,
    StopScope,
    start_ceiling,
)
from billing.models.default_ids import ID_LENGTH, budget_alert_id, budget_id, budget_stop_id, hold_id
from billing.models.periods import BillingPeriod
from broker.models import Lease
from tenants.models import Project
from tenants.models.tenants import TenantOwned

MAX_ERROR_LENGTH = 300


def default_thresholds() -> list[int]:
    return list(DEFAULT_THRESHOLDS)


def default_forecast_thresholds() -> list[int]:
    return list(DEFAULT_FORECAST_THRESHOLDS)


class Budget(TenantOwned):
    """The most that a project and its sub-projects may cost in a month.

    A lease holds its share of the budget before it queues.
    """

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=budget_id)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    currency = models.CharField(max_length=3)
    limit_minor = models.BigIntegerField()
    version = models.PositiveIntegerField(default=1)
    made_at = models.DateTimeField()
    # Whole percents of the limit, in order; see domain/budgets.py for what happens at them.
    thresholds = ArrayField(
        models.PositiveSmallIntegerField(), default=default_thresholds, db_default=list(DEFAULT_THRESHOLDS)
    )
    forecast_thresholds = ArrayField(
        models.PositiveSmallIntegerField(),
        default=default_forecast_thresholds,
        db_default=list(DEFAULT_FORECAST_THRESHOLDS),
    )
    stop_new_at = models.PositiveSmallIntegerField(null=True, default=100, db_default=100)
    stop_idle_at = models.PositiveSmallIntegerField(null=True)
    stop_all_at = models.PositiveSmallIntegerField(null=True)
    grace_minutes = models.PositiveSmallIntegerField(default=60, db_default=60)
    checked_at = models.DateTimeField(null=True)  # last check; the oldest is checked first

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "project"], name="budget_once_per_node"),
            models.CheckConstraint(condition=Q(limit_minor__gte=0), name="budget_not_negative"),
        ]

    def __str__(self) -> str:
        return self.id

    @property
    def terms(self) -> BudgetTerms:
        return BudgetTerms(
            thresholds=tuple(self.thresholds),
            forecast_thresholds=tuple(self.forecast_thresholds),
            stop_new_at=self.stop_new_at,
            stop_idle_at=self.stop_idle_at,
            stop_all_at=self.stop_all_at,
            grace_minutes=self.grace_minutes,
        )

    @property
    def ceiling_minor(self) -> int | None:
        """The amount in minor units up to which new leases may start; None if unlimited."""
        return start_ceiling(self.limit_minor, self.stop_new_at)


class BudgetMonth(TenantOwned):
    """One month of a budget; `base_num` is what was spent before the budget existed."""

    id = models.BigAutoField(primary_key=True)
    budget = models.ForeignKey(Budget, on_delete=models.CASCADE, related_name="months")
    period = models.ForeignKey(BillingPeriod, on_delete=models.PROTECT, related_name="+")
    base_num = models.DecimalField(max_digits=38, decimal_places=0, default=0)
    taken_num = models.DecimalField(max_digits=38, decimal_places=0, default=0)  # held: `base` and all parts
    spent_num = models.DecimalField(max_digits=38, decimal_places=0, default=0)  # of that, charged

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
    """Money held for a lease, from before it queues until all its usage is charged."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=hold_id)
    lease = models.OneToOneField(Lease, on_delete=models.PROTECT, related_name="+")
    currency = models.CharField(max_length=3)
    opened_at = models.DateTimeField()
    checked_at = models.DateTimeField()
    seq = models.PositiveIntegerField(default=0)  # of the lease, at the last check
    settled_at = models.DateTimeField(null=True)
    covers_until = models.DateTimeField(null=True)  # by the tenant's wallet; None if not prepaid

    class Meta:
        indexes = [models.Index(fields=["checked_at"], name="hold_open", condition=Q(settled_at__isnull=True))]

    def __str__(self) -> str:
        return self.id


class HoldPart(TenantOwned):
    """The part of a hold in one month of one budget, with its spent amount."""

    id = models.BigAutoField(primary_key=True)
    hold = models.ForeignKey(Hold, on_delete=models.PROTECT, related_name="parts")
    month = models.ForeignKey(BudgetMonth, on_delete=models.CASCADE, related_name="parts")
    num = models.DecimalField(max_digits=38, decimal_places=0)
    spent_num = models.DecimalField(max_digits=38, decimal_places=0, default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "hold", "month"], name="hold_part_once"),
            models.CheckConstraint(condition=Q(spent_num__gte=0, num__gte=F("spent_num")), name="hold_part_covers"),
        ]

    def __str__(self) -> str:
        return f"{self.hold_id} {self.month_id}"


class BudgetAlert(TenantOwned):
    """A threshold of a budget that was reached in a month; people are alerted once.

    Raising the limit lifts the alerts that no longer apply.
    """

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=budget_alert_id)
    budget = models.ForeignKey(Budget, on_delete=models.CASCADE, related_name="alerts")
    period = models.ForeignKey(BillingPeriod, on_delete=models.PROTECT, related_name="+")
    measure = models.CharField(max_length=8)
    percent = models.PositiveSmallIntegerField()
    minor = models.BigIntegerField()  # spent or forecast
    limit_minor = models.BigIntegerField()  # at that time
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
                condition=Q(measure__in=[each.value for each in BudgetMeasure]), name="budget_alert_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.budget_id} {self.measure} {self.percent} %"


class BudgetStop(TenantOwned):
    """A scheduled stop of the leases below a budget, announced beforehand.

    It is lifted when the limit is raised.
    """

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=budget_stop_id)
    budget = models.ForeignKey(Budget, on_delete=models.CASCADE, related_name="stops")
    period = models.ForeignKey(BillingPeriod, on_delete=models.PROTECT, related_name="+")
    what = models.CharField(max_length=4)
    percent = models.PositiveSmallIntegerField()
    minor = models.BigIntegerField()  # spent at that time
    limit_minor = models.BigIntegerField()
    notified_at = models.DateTimeField()
    due_at = models.DateTimeField()
    done_at = models.DateTimeField(null=True)  # only of `all`: idle leases are looked for until the month ends
    ended = models.PositiveIntegerField(default=0)  # leases
    lifted_at = models.DateTimeField(null=True)
    checked_at = models.DateTimeField(null=True)  # last check by the worker
    last_error = models.CharField(max_length=MAX_ERROR_LENGTH, blank=True, default="", db_default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "budget", "period", "what"],
                condition=Q(lifted_at__isnull=True),
                name="budget_stop_once",
            ),
            models.CheckConstraint(condition=Q(what__in=[each.value for each in StopScope]), name="budget_stop_known"),
            models.CheckConstraint(condition=Q(due_at__gte=F("notified_at")), name="budget_stop_told_first"),
        ]
        indexes = [
            models.Index(
                fields=["due_at"], name="budget_stop_due", condition=Q(lifted_at__isnull=True, done_at__isnull=True)
            )
        ]

    def __str__(self) -> str:
        return f"{self.budget_id} {self.what}"
