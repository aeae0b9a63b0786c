"""Attempts of batch leases: each run of the command that is over."""

from django.db import models

from broker.models.keys import ID_LENGTH, lease_attempt_id
from broker.models.leases import Lease
from tenants.models.tenants import Tenant, TenantOwned


class LeaseAttempt(TenantOwned):
    """One run of a batch lease's command that failed, was lost, or finished."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=lease_attempt_id)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", db_index=False)
    lease = models.ForeignKey(Lease, on_delete=models.CASCADE, db_index=False, related_name="attempts")
    number = models.PositiveSmallIntegerField()
    generation = models.PositiveIntegerField()  # of the lease; several of one attempt where the provider failed
    started_at = models.DateTimeField(null=True)  # null: it ended before it was seen to run
    ended_at = models.DateTimeField()
    exit_code = models.SmallIntegerField(null=True)  # null: unknown
    text = models.CharField(max_length=300)  # how it ended
    counted = models.BooleanField()  # as a try; a fault of the provider is not
    retry_at = models.DateTimeField(null=True)  # when the command is run again; null: it is not

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "lease", "generation"], name="lease_attempt_once")]

    def __str__(self) -> str:
        return f"{self.lease_id} attempt {self.number}"
