"""Ceilings of a project node. PostgreSQL refuses to grant above one, whoever asks at once."""

from datetime import datetime

from django.db import models
from django.db.models import F, Q

from tenants.domain.limits import window_of
from tenants.models.keys import ID_LENGTH, quota_id
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
    # Only for gpu_seconds: the month (UTC) it counts. The next one begins with the first grant in it, so until then
    # the row tells of one that has passed: people are told `used_at`.
    window_start = models.DateTimeField(null=True)
    version = models.PositiveIntegerField(default=1)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "project", "kind"], name="quota_once_per_node"),
            models.CheckConstraint(
                condition=Q(used__gte=0, used__lte=F("limit")), name="quota_never_exceeded"
            ),
            models.CheckConstraint(
                condition=Q(soft_limit__gte=0, soft_limit__lte=F("limit")), name="quota_soft_below_hard"
            ),
            models.CheckConstraint(condition=Q(kind__in=QuotaKind.values), name="quota_kind_known"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.used}/{self.limit}"

    def used_at(self, now: datetime) -> int:
        """Return what counts as used now: of a month that has passed, nothing."""
        return self.used if self.window_start == self.window_at(now) else 0

    def window_at(self, now: datetime) -> datetime | None:
        """Return the month that counts now; None of what is not counted by months."""
        if self.kind != QuotaKind.GPU_SECONDS:
            return None
        return max(self.window_start or window_of(now), window_of(now))
