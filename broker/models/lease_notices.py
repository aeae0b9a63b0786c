"""Notices about the end of a lease; each is written once, and billing e-mails it."""

from django.db import models

from broker.domain.lifecycle.lease_notice_kinds import LeaseNoticeKind
from broker.models.keys import ID_LENGTH, lease_notice_id
from broker.models.leases import Lease
from tenants.models.tenants import Tenant, TenantOwned


class LeaseNotice(TenantOwned):
    """Something a lease's requester is told about one of its ends."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=lease_notice_id)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", db_index=False)
    lease = models.ForeignKey(Lease, on_delete=models.CASCADE, db_index=False, related_name="notices")
    kind = models.CharField(max_length=20, choices=[(kind.value, kind.value) for kind in LeaseNoticeKind])
    lead_s = models.PositiveIntegerField(default=0)  # of a notice before the end: how long before
    ends_at = models.DateTimeField()  # the end it is about; after an extension, the new one
    text = models.CharField(max_length=500, blank=True, default="")  # why an extension was refused
    made_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "lease", "kind", "lead_s", "ends_at"], name="lease_notice_once")
        ]
        indexes = [models.Index(fields=["made_at"], name="lease_notice_newest")]

    def __str__(self) -> str:
        return f"{self.kind} {self.lease_id}"
