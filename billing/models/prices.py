"""Price versions with validity. One that has begun is never edited, only closed."""

from datetime import datetime
from typing import Self

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import ArrayField, DateTimeRangeField, RangeOperators
from django.db import models
from django.db.models import F, Min, Q
from django.db.models.functions import Lower

from billing.models.default_ids import ID_LENGTH
from broker.models import Offering, OfferingState

LIST_CARD_NAME = "list"


class PriceModel(models.TextChoices):
    FLAT = "flat"
    GRADUATED = "graduated"  # each part of a month's usage at the price of the tier it falls into
    VOLUME = "volume"  # all of a month's usage at the price of the tier it reaches
    PACKAGE = "package"  # a number of hours for a fixed price; the rest by the hour, if that is less


class RateCard(models.Model):
    """The list prices, or the prices of one tenant, which override them."""

    name = models.CharField(max_length=60)
    tenant_id = models.CharField(max_length=ID_LENGTH, null=True)  # None: the list

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant_id", "name"], nulls_distinct=False, name="rate_card_once")
        ]

    def __str__(self) -> str:
        return self.name


def list_rate_card() -> RateCard:
    """Return the rate card of list prices, which applies without a tenant price."""
    return RateCard.objects.get_or_create(name=LIST_CARD_NAME, tenant_id=None)[0]


class PriceVersionQuerySet(models.QuerySet["PriceVersion"]):
    def listed(self) -> Self:
        """Return the list prices."""
        return self.filter(tenant_id=None)

    def storage_sold_since(self) -> datetime | None:
        """Return when the first list price of storage begins; earlier volume usage is free."""
        listed = self.listed().filter(offering__state=OfferingState.METERED)
        first: datetime | None = listed.aggregate(first=Min(Lower("valid")))["first"]
        return first

    def paid_by(self, tenant_id: str) -> Self:
        """Return the prices that apply to a tenant: the list's and its own.

        Its own override the list's.
        """
        return self.filter(Q(tenant_id=None) | Q(tenant_id=tenant_id))


class PriceVersion(models.Model):
    tenant_id = models.CharField(max_length=ID_LENGTH, null=True)  # that of its rate card
    rate_card = models.ForeignKey(RateCard, on_delete=models.PROTECT, related_name="versions")
    offering = models.ForeignKey(Offering, on_delete=models.PROTECT, related_name="price_versions")
    currency = models.CharField(max_length=3)
    valid = DateTimeRangeField()  # [from, until); no end means the current price
    nano_per_hour = models.BigIntegerField()  # 10⁻⁹ currency units per unit-hour
    # A run preempted within this time after its start is free.
    free_start_s = models.PositiveIntegerField(default=0, db_default=0)
    # Tier starts, not ranges, so tiers have no gaps or overlaps: from that many unit-seconds of a tenant's month
    # on, that price per hour; before the first, and at most, nano_per_hour. For a package: its size and its price.
    model = models.CharField(max_length=9, choices=PriceModel, default=PriceModel.FLAT, db_default="flat")
    tier_from_s = ArrayField(models.BigIntegerField(), null=True)
    tier_nano = ArrayField(models.BigIntegerField(), null=True)
    created_by = models.CharField(max_length=254, blank=True, default="")
    created_at = models.DateTimeField()
    # The version that it closed and when that would have ended: it stays in force if this one is withdrawn in time.
    replaced_id = models.BigIntegerField(null=True)
    replaced_until = models.DateTimeField(null=True)

    objects = PriceVersionQuerySet.as_manager()

    class Meta:
        constraints = [
            ExclusionConstraint(
                name="one_price_at_a_time",
                expressions=[
                    (F("rate_card"), RangeOperators.EQUAL),
                    (F("offering"), RangeOperators.EQUAL),
                    ("currency", RangeOperators.EQUAL),
                    ("valid", RangeOperators.OVERLAPS),
                ],
            ),
            models.CheckConstraint(condition=Q(nano_per_hour__gte=0), name="price_not_negative"),
        ]
        # Few rows, and every month close checks whether there are any.
        indexes = [models.Index(fields=["tenant_id"], name="price_in_tiers", condition=~Q(model=PriceModel.FLAT))]

    def __str__(self) -> str:
        return f"{self.nano_per_hour} n{self.currency}/h"
