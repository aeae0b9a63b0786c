"""Units of an offering that a tenant pays for around the clock, used or not."""

from django.contrib.postgres.fields import DateTimeRangeField
from django.contrib.postgres.indexes import GistIndex
from django.db import models
from django.db.models import Q

from billing.models.default_ids import ID_LENGTH, commitment_id
from broker.models import Offering
from tenants.models.tenants import TenantOwned


class Commitment(TenantOwned):
    """A commitment to one offering; several at a time add up.

    It can be ended, but not before the end of a month that is closed.
    """

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=commitment_id)
    offering = models.ForeignKey(Offering, on_delete=models.PROTECT, related_name="+")
    units = models.PositiveIntegerField()  # in every second
    nano_per_hour = models.BigIntegerField()  # per unit, in 10⁻⁹ currency units
    currency = models.CharField(max_length=3)
    valid = DateTimeRangeField()  # [from, until) in whole seconds; no end means open
    agreed_by = models.CharField(max_length=254)
    agreed_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(units__gt=0, nano_per_hour__gt=0), name="commitment_of_something"),
            models.CheckConstraint(condition=Q(valid__isempty=False), name="commitment_lasts"),
        ]
        indexes = [GistIndex(fields=["tenant", "offering", "valid"], name="commitments_in_force")]

    def __str__(self) -> str:
        return self.id
