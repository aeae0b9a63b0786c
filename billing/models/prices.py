"""Rates with validity. A version that has begun is never edited, only closed."""

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import DateTimeRangeField, RangeOperators
from django.db import models
from django.db.models import F, Q

from broker.models import Offering


class RateCard(models.Model):
    name = models.CharField(max_length=60, unique=True)

    def __str__(self) -> str:
        return self.name


class PriceVersion(models.Model):
    rate_card = models.ForeignKey(RateCard, on_delete=models.PROTECT, related_name="versions")
    offering = models.ForeignKey(Offering, on_delete=models.PROTECT, related_name="price_versions")
    currency = models.CharField(max_length=3)
    valid = DateTimeRangeField()  # [from, until); until open is the present price
    nano_per_hour = models.BigIntegerField()  # 10⁻⁹ currency units an hour, for one
    created_by = models.CharField(max_length=254, blank=True, default="")
    created_at = models.DateTimeField()

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

    def __str__(self) -> str:
        return f"{self.nano_per_hour} n{self.currency}/h"
