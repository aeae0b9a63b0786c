"""Logs of leases: how far each was collected, and its lines in chunks."""

from datetime import datetime

from django.db import models
from django.db.models import Q

from broker.models.leases import Lease
from ports.postgres.sql_statements import prepared_cursor
from tenants.models.tenants import Tenant, TenantOwned


class LeaseLog(TenantOwned):
    """The log of one lease, and when it is to be collected next."""

    lease = models.OneToOneField(Lease, on_delete=models.PROTECT, primary_key=True, related_name="log")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", db_index=False)
    first_line = models.PositiveBigIntegerField(default=1)  # number of the oldest line that is kept
    next_line = models.PositiveBigIntegerField(default=1)  # number that the next line will have
    size_bytes = models.PositiveBigIntegerField(default=0)  # of the lines that are kept
    generation = models.PositiveIntegerField(default=0)  # placement that `cursor` belongs to
    cursor = models.JSONField(default=dict)  # what the provisioner has read of that placement
    transition_seq = models.IntegerField(default=-1)  # of the newest state change that has a line
    fault = models.CharField(max_length=300, blank=True, default="")  # why output cannot be read now
    quiet_reads = models.PositiveSmallIntegerField(default=0)  # consecutive reads without a new line
    claims = models.PositiveBigIntegerField(default=0)  # grows with each claim and store; an older one may not store
    claimed_until = models.DateTimeField(null=True)  # somebody collects it until then, or is dead
    due_at = models.DateTimeField(null=True)  # when to collect again; null: everything is collected
    followed_until = models.DateTimeField(null=True)  # somebody reads it live until then
    completed_at = models.DateTimeField(null=True)  # since when everything of a released lease is collected

    class Meta:
        indexes = [
            models.Index(fields=["due_at"], name="lease_log_due", condition=Q(due_at__isnull=False)),
            models.Index(fields=["completed_at"], name="lease_log_complete", condition=Q(completed_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"log of {self.lease_id}"

    @classmethod
    def collect_soon(cls, lease_id: str, *, now: datetime) -> None:
        """Have the newest change of a lease's state collected now."""
        with prepared_cursor() as cursor:
            cursor.execute(
                "UPDATE broker_leaselog SET due_at = %s WHERE lease_id = %s AND completed_at IS NULL", [now, lease_id]
            )


class LeaseLogChunk(TenantOwned):
    """Consecutive lines of a log, as `domain.logs.log_lines` encodes them."""

    pk = models.CompositePrimaryKey("lease_id", "first_line")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", db_index=False)
    lease = models.ForeignKey(Lease, on_delete=models.PROTECT, related_name="+", db_index=False)
    first_line = models.PositiveBigIntegerField()
    line_count = models.PositiveIntegerField()
    size_bytes = models.PositiveIntegerField()
    body = models.TextField()

    def __str__(self) -> str:
        return f"lines of {self.lease_id} from {self.first_line}"
