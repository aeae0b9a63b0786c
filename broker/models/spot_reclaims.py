"""Reclaims of spot leases: notices, and the slices that are promised to a waiting lease."""

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import IntegerRangeField, RangeOperators
from django.db import models
from django.db.models import Q

from broker.domain.lifecycle.spot_terms import ReclaimNoticeState, SpotReclaimState
from broker.models.inventory import Gpu, GpuModel
from broker.models.keys import ID_LENGTH, reclaim_notice_id, spot_reclaim_id
from broker.models.leases import Lease
from tenants.models.tenants import TenantOwned


class SpotReclaimQuerySet(models.QuerySet["SpotReclaim"]):
    def open(self) -> "SpotReclaimQuerySet":
        return self.filter(state=SpotReclaimState.NOTICED.value)

    def of_pool(self, model: str, region: str) -> "SpotReclaimQuerySet":
        return self.filter(gpu_model=model, region=region)


class SpotReclaim(models.Model):
    """The spot leases that get notice so that one waiting lease can start."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=spot_reclaim_id)
    gpu_model = models.ForeignKey(GpuModel, on_delete=models.PROTECT, db_index=False, related_name="+")
    region = models.CharField(max_length=60)
    waiting_lease = models.CharField(max_length=ID_LENGTH)  # of any tenant, so not a reference
    noticed_at = models.DateTimeField()
    reclaim_at = models.DateTimeField()  # end of the notice, the same for all its leases
    state = models.CharField(max_length=12, default=SpotReclaimState.NOTICED.value)
    state_at = models.DateTimeField()
    why = models.CharField(max_length=200, blank=True, default="")

    objects = SpotReclaimQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["waiting_lease"],
                condition=Q(state=SpotReclaimState.NOTICED.value),
                name="one_reclaim_per_waiting_lease",
            ),
            models.CheckConstraint(
                condition=Q(state__in=[state.value for state in SpotReclaimState]), name="spot_reclaim_state_known"
            ),
        ]

    def __str__(self) -> str:
        return f"for {self.waiting_lease} at {self.reclaim_at:%H:%M:%S}"


class PromisedSlot(models.Model):
    """A slice that a waiting lease gets once the spot leases on it have ended.

    Deleted when the waiting lease is placed, or no longer gets it. A database trigger tells the placement's memory.
    """

    reclaim = models.ForeignKey(SpotReclaim, on_delete=models.CASCADE, related_name="slots")
    lease = models.CharField(max_length=ID_LENGTH)  # the waiting one
    gpu = models.ForeignKey(Gpu, on_delete=models.CASCADE)
    placement = IntegerRangeField()  # memory slices [start, start + size)
    profile = models.CharField(max_length=30)
    isolation = models.CharField(max_length=10)

    class Meta:
        constraints = [
            ExclusionConstraint(
                name="one_promise_per_place",
                expressions=[("gpu", RangeOperators.EQUAL), ("placement", RangeOperators.OVERLAPS)],
            ),
        ]

    def __str__(self) -> str:
        return f"{self.gpu_id} {self.placement}"


class ReclaimNotice(TenantOwned):
    """The notice to one spot lease; the row belongs to its tenant."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=reclaim_notice_id)
    reclaim = models.ForeignKey(SpotReclaim, on_delete=models.PROTECT, related_name="notices")
    lease = models.ForeignKey(Lease, on_delete=models.PROTECT, related_name="reclaim_notices")
    noticed_at = models.DateTimeField()
    reclaim_at = models.DateTimeField()
    state = models.CharField(max_length=12, default=ReclaimNoticeState.GIVEN.value)
    state_at = models.DateTimeField()
    # When the checkpoint command was sent to the lease, and what came of it.
    checkpoint_at = models.DateTimeField(null=True)
    checkpoint_text = models.CharField(max_length=200, blank=True, default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "lease"],
                condition=Q(state=ReclaimNoticeState.GIVEN.value),
                name="one_open_notice_per_lease",
            ),
            models.CheckConstraint(
                condition=Q(state__in=[state.value for state in ReclaimNoticeState]), name="reclaim_notice_state_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.lease_id} until {self.reclaim_at:%H:%M:%S}"
