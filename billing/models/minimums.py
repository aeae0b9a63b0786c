"""The minimum monthly spend that a tenant agreed to."""

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import DateTimeRangeField, RangeOperators
from django.db import models
from django.db.models import F, Q

from billing.models.default_ids import ID_LENGTH, minimum_id
from tenants.models.tenants import TenantOwned


class Minimum(TenantOwned):
    """An agreed minimum; a tenant has one at a time.

    A shortfall becomes a line of its own when the month closes.
    """

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=minimum_id)
    minor = models.BigIntegerField()  # per whole month, before tax
    currency = models.CharField(max_length=3)
    valid = DateTimeRangeField()  # [from, until) in whole seconds; no end means open
    agreed_by = models.CharField(max_length=254)
    agreed_at = models.DateTimeField()

    class Meta:
        constraints = [
            ExclusionConstraint(
                name="one_minimum_at_a_time",
                expressions=[(F("tenant"), RangeOperators.EQUAL), ("valid", RangeOperators.OVERLAPS)],
            ),
            models.CheckConstraint(condition=Q(minor__gt=0), name="minimum_of_something"),
        ]

    def __str__(self) -> str:
        return self.id
