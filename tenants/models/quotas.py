"""Quotas of a project; a check constraint refuses concurrent grants above one."""

from datetime import datetime

from django.db import models
from django.db.models import F, Q

from ports import clock
from tenants.models.default_ids import ID_LENGTH, quota_id
from tenants.models.projects import Project
from tenants.models.tenants import TenantOwned


class QuotaKind(models.TextChoices):
    UNITS = "units"  # slices held at once, weighted: milli-units, 1000 = one compute slice
    GPU_SECONDS = "gpu_seconds"  # unit-seconds asked for in the window: milli-unit seconds
    STORAGE = "storage"  # GiB of volumes
    BURN = "burn"  # 10⁻⁹ currency units per hour of everything held at once


class Quota(TenantOwned):
    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=quota_id)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="quotas")
    kind = models.CharField(max_length=12, choices=QuotaKind)
    limit = models.BigIntegerField()
    # What a grant is tested against; it may be set below use, while `limit` may not.
    soft_limit = models.BigIntegerField()
    used = models.BigIntegerField(default=0)
    # Only for gpu_seconds: the month (UTC) that `used` counts. The row switches to a new month with its first
    # grant; until then `used` belongs to a past month, so show `used_at`.
    window_start = models.DateTimeField(null=True)
    version = models.PositiveIntegerField(default=1)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "project", "kind"], name="quota_once_per_node"),
            models.CheckConstraint(condition=Q(used__gte=0, used__lte=F("limit")), name="quota_never_exceeded"),
            models.CheckConstraint(
                condition=Q(soft_limit__gte=0, soft_limit__lte=F("limit")), name="quota_soft_below_hard"
            ),
            models.CheckConstraint(condition=Q(kind__in=QuotaKind.values), name="quota_kind_known"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.used}/{self.limit}"

    def used_at(self, now: datetime) -> int:
        """Return what counts as used now; a past month's use counts as nothing."""
        return self.used if self.window_start == self.window_at(now) else 0

    def window_at(self, now: datetime) -> datetime | None:
        """Return the month that counts now, or None for a kind not counted by month."""
        if self.kind != QuotaKind.GPU_SECONDS:
            return None
        return max(self.window_start or clock.month_start(now), clock.month_start(now))
