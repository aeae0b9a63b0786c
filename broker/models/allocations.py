"""The concrete slices a lease holds. PostgreSQL keeps two leases off one place."""

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import IntegerRangeField, RangeOperators
from django.db import models
from django.db.models import F, Q

from broker.models.inventory import Gpu
from broker.models.keys import ID_LENGTH, allocation_id
from broker.models.leases import Lease
from tenants.models.tenants import TenantOwned

HELD = Q(released_at__isnull=True)
LEAVING = Q(leaving_since__isnull=False)


class Allocation(TenantOwned):
    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=allocation_id)
    lease = models.ForeignKey(Lease, on_delete=models.PROTECT, related_name="allocations")
    generation = models.PositiveIntegerField()
    gpu = models.ForeignKey(Gpu, on_delete=models.PROTECT)
    placement = IntegerRangeField()  # memory slices [start, start + size); a whole card covers the grid
    profile = models.CharField(max_length=30)
    isolation = models.CharField(max_length=10)
    may_share = models.BooleanField(default=False)  # the cluster's owner allows tenants side by side
    held_at = models.DateTimeField()  # the database puts it off until whoever was there before had left
    # Its lease went on without it: the place stays taken until its cluster proves that nothing of it is left there.
    leaving_since = models.DateTimeField(null=True)
    # Held beside the place its lease is at: the next one before a move, and the last one until the move is done.
    for_move = models.BooleanField(default=False, db_default=False)
    released_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            ExclusionConstraint(
                name="one_lease_per_place",
                expressions=[("gpu", RangeOperators.EQUAL), ("placement", RangeOperators.OVERLAPS)],
                condition=HELD,
            ),
            ExclusionConstraint(
                name="one_isolation_per_card",
                expressions=[("gpu", RangeOperators.EQUAL), ("isolation", RangeOperators.NOT_EQUAL)],
                condition=HELD,
            ),
            ExclusionConstraint(
                name="no_strangers_on_a_soft_card",
                expressions=[("gpu", RangeOperators.EQUAL), (F("tenant"), RangeOperators.NOT_EQUAL)],
                condition=HELD & Q(isolation__in=["soft", "none"], may_share=False),
            ),
        ]
        indexes = [
            models.Index(fields=["gpu"], name="allocation_held", condition=HELD),
            models.Index(fields=["gpu", "released_at"], name="allocation_freed"),
            models.Index(fields=["released_at"], name="allocation_lately"),
            models.Index(fields=["leaving_since"], name="allocation_leaving", condition=HELD & LEAVING),
        ]

    def __str__(self) -> str:
        return f"{self.gpu_id} {self.placement}"
