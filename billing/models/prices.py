"""Rates with validity. A version that has begun is never edited, only closed."""

from typing import Self

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import ArrayField, DateTimeRangeField, RangeOperators
from django.db import models
from django.db.models import F, Q

from billing.models.keys import ID_LENGTH
from broker.models import Offering


class PriceModel(models.TextChoices):
    FLAT = "flat"
    GRADUATED = "graduated"  # each part of a month's use at the price of the tier that it falls into
    VOLUME = "volume"  # all of a month's use at the price of the tier that it reaches
    PACKAGE = "package"  # so many hours at once for a price; what is left over by the hour, if that is less


class RateCard(models.Model):
    """The list, which everybody pays by, or the prices of one tenant, which come before it."""

    name = models.CharField(max_length=60)
    tenant_id = models.CharField(max_length=ID_LENGTH, null=True)  # None: everybody's

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant_id", "name"], nulls_distinct=False, name="rate_card_once")
        ]

    def __str__(self) -> str:
        return self.name


class PriceVersionQuerySet(models.QuerySet["PriceVersion"]):
    def listed(self) -> Self:
        """Everybody's: the list."""
        return self.filter(tenant_id=None)

    def paid_by(self, tenant_id: str) -> Self:
        """What a tenant may pay by: the list and, where it has one, its own price, which comes before it."""
        return self.filter(Q(tenant_id=None) | Q(tenant_id=tenant_id))


class PriceVersion(models.Model):
    tenant_id = models.CharField(max_length=ID_LENGTH, null=True)  # its card's
    rate_card = models.ForeignKey(RateCard, on_delete=models.PROTECT, related_name="versions")
    offering = models.ForeignKey(Offering, on_delete=models.PROTECT, related_name="price_versions")
    currency = models.CharField(max_length=3)
    valid = DateTimeRangeField()  # [from, until); until open is the present price
    nano_per_hour = models.BigIntegerField()  # 10⁻⁹ currency units an hour, for one
    # What is taken back for others before it ran so long since its start costs nothing.
    free_start_s = models.PositiveIntegerField(default=0, db_default=0)
    # Points, not stretches, so that tiers tile by construction: from so many unit-seconds of a tenant's month on, so
    # much an hour; before the first, and at most, the price itself. Of a package: its size, and what a whole one costs.
    model = models.CharField(max_length=9, choices=PriceModel, default=PriceModel.FLAT, db_default="flat")
    tier_from_s = ArrayField(models.BigIntegerField(), null=True)
    tier_nano = ArrayField(models.BigIntegerField(), null=True)
    created_by = models.CharField(max_length=254, blank=True, default="")
    created_at = models.DateTimeField()

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
        # They are few, and each close asks whether there are any.
        indexes = [
            models.Index(fields=["tenant_id"], name="price_in_tiers", condition=~Q(model=PriceModel.FLAT))
        ]

    def __str__(self) -> str:
        return f"{self.nano_per_hour} n{self.currency}/h"
