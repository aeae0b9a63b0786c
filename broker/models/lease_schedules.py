"""Lease schedules: a saved request that is repeated at the times of a cron expression."""

from django.db import models
from django.db.models import Q

from broker.models.keys import ID_LENGTH, lease_schedule_id, scheduled_run_id
from broker.models.leases import Lease
from tenants.models import Project
from tenants.models.tenants import Tenant, TenantOwned


class OverlapPolicy(models.TextChoices):
    """What happens when the lease of an earlier time is not over."""

    SKIP = "skip"
    ALLOW = "allow"


class ScheduledRunResult(models.TextChoices):
    """What became of one due time."""

    STARTED = "started"
    SKIPPED = "skipped"  # the earlier lease is not over
    REFUSED = "refused"  # by a quota, a budget, or for want of a role
    MISSED = "missed"  # no worker ran at that time


class LeaseSchedule(TenantOwned):
    """A lease request with the times at which it is repeated."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=lease_schedule_id)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", db_index=False)
    project = models.ForeignKey(Project, on_delete=models.PROTECT, db_index=False)
    name = models.CharField(max_length=100)
    cron = models.CharField(max_length=100)
    time_zone = models.CharField(max_length=64)
    overlap = models.CharField(max_length=5, choices=OverlapPolicy, default=OverlapPolicy.SKIP)
    request = models.JSONField()  # fields of a LeaseRequest; may hold secrets in `env`, of which only names are shown
    next_at = models.DateTimeField(null=True)  # null while paused
    created_at = models.DateTimeField()
    # Who the leases are requested by, and the token it was created with: its caps and scopes apply.
    requested_by_kind = models.CharField(max_length=20)
    requested_by = models.CharField(max_length=ID_LENGTH)
    requested_by_label = models.CharField(max_length=254)
    requested_with_token = models.CharField(max_length=ID_LENGTH, blank=True, default="")
    version = models.PositiveIntegerField(default=1)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "project", "name"], name="lease_schedule_named_once")]
        indexes = [
            models.Index(fields=["tenant", "-id"], name="lease_schedule_newest"),
            models.Index(fields=["next_at"], name="lease_schedule_due", condition=Q(next_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_paused(self) -> bool:
        return self.next_at is None


class ScheduledRun(TenantOwned):
    """One due time of a schedule, and what became of it."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=scheduled_run_id)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", db_index=False)
    schedule = models.ForeignKey(LeaseSchedule, on_delete=models.CASCADE, db_index=False, related_name="runs")
    due_at = models.DateTimeField()
    result = models.CharField(max_length=8, choices=ScheduledRunResult)
    lease = models.ForeignKey(Lease, on_delete=models.PROTECT, null=True, db_index=False, related_name="+")
    text = models.CharField(max_length=500, blank=True, default="")  # why no lease was requested
    made_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "schedule", "due_at"], name="scheduled_run_once")]

    def __str__(self) -> str:
        return f"{self.schedule_id} {self.due_at}"
