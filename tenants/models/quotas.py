"""Ceilings of a project node. PostgreSQL refuses to grant above one, whoever asks at once."""

from django.db import models
from django.db.models import F, Q

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
    window_start = models.DateTimeField(null=True)  # only for gpu_seconds: the local month it counts
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
