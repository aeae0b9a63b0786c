"""The price promised to a lease, stored when the lease redeems its quote. Append-only.

The id is part of the signed quote, so nobody can redeem it twice.
"""

from django.db import models
from django.db.models import F, Q

from billing.models.default_ids import ID_LENGTH, quote_id
from billing.models.prices import PriceVersion
from broker.models import Lease, Offering
from tenants.models.tenants import TenantOwned


class Quote(TenantOwned):
    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=quote_id)
    lease = models.OneToOneField(Lease, on_delete=models.PROTECT, related_name="+")
    project_id = models.CharField(max_length=ID_LENGTH)
    offering = models.ForeignKey(Offering, on_delete=models.PROTECT, related_name="+", db_index=False)
    price_version = models.ForeignKey(PriceVersion, on_delete=models.PROTECT, related_name="+", db_index=False)
    currency = models.CharField(max_length=3)
    nano_per_hour = models.BigIntegerField()  # the version's, per unit: the price of the whole lease
    is_ceiling = models.BooleanField(default=True, db_default=True)  # False: older, and the price whatever it was later
    quantity = models.PositiveIntegerField()
    max_duration_s = models.PositiveIntegerField()
    hold_minor = models.BigIntegerField()  # for the whole duration, rounded up: the amount to hold
    cap_minor = models.BigIntegerField()  # for the whole duration, rounded as an invoice line is
    made_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    cited_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(nano_per_hour__gte=0), name="quote_not_negative"),
            models.CheckConstraint(condition=Q(quantity__gte=1), name="quote_of_something"),
            models.CheckConstraint(condition=Q(cited_at__lt=F("expires_at")), name="quote_cited_in_time"),
        ]

    def __str__(self) -> str:
        return self.id
