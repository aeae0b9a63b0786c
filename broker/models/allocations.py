"""Slices held by leases; an exclusion constraint prevents overlapping allocations."""

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import IntegerRangeField, RangeOperators
from django.db import models
from django.db.models import F, Q

from broker.models.inventory import Gpu
from broker.models.keys import ID_LENGTH, allocation_id
from broker.models.leases import Lease
from tenants.models.tenants import TenantOwned

IS_HELD = Q(released_at__isnull=True)
IS_ABANDONED = Q(leaving_since__isnull=False)


class Allocation(TenantOwned):
    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=allocation_id)
    lease = models.ForeignKey(Lease, on_delete=models.PROTECT, related_name="allocations")
    generation = models.PositiveIntegerField()
    gpu = models.ForeignKey(Gpu, on_delete=models.PROTECT)
    placement = IntegerRangeField()  # memory slices [start, start + size); a whole GPU covers the grid
    profile = models.CharField(max_length=30)
    isolation = models.CharField(max_length=10)
    may_share = models.BooleanField(default=False)  # the cluster's owner allows several tenants on one GPU
    held_at = models.DateTimeField()  # a database trigger delays it until the previous holder has released the slot
    # The lease has abandoned it: it stays held until its cluster proves that nothing of the lease is left there.
    leaving_since = models.DateTimeField(null=True)
    # Held in addition to the lease's current one: the target before a relocation, the source until it is done.
    is_relocation = models.BooleanField(default=False, db_default=False)
    released_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            ExclusionConstraint(
                name="one_lease_per_place",
                expressions=[("gpu", RangeOperators.EQUAL), ("placement", RangeOperators.OVERLAPS)],
                condition=IS_HELD,
            ),
            ExclusionConstraint(
                name="one_isolation_per_gpu",
                expressions=[("gpu", RangeOperators.EQUAL), ("isolation", RangeOperators.NOT_EQUAL)],
                condition=IS_HELD,
            ),
            ExclusionConstraint(
                name="one_tenant_per_soft_gpu",
                expressions=[("gpu", RangeOperators.EQUAL), (F("tenant"), RangeOperators.NOT_EQUAL)],
                condition=IS_HELD & Q(isolation__in=["soft", "none"], may_share=False),
            ),
        ]
        indexes = [
            models.Index(fields=["gpu"], name="allocation_held", condition=IS_HELD),
            models.Index(fields=["gpu", "released_at"], name="allocation_freed"),
            models.Index(fields=["released_at"], name="allocation_lately"),
            models.Index(fields=["leaving_since"], name="allocation_leaving", condition=IS_HELD & IS_ABANDONED),
        ]

    def __str__(self) -> str:
        return f"{self.gpu_id} {self.placement}"
