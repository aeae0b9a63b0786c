"""What a whole month comes to beside its seconds. Append-only, written once, in the breath in which the month closes.

What takes something off is joined to the line it takes it off; what adds something is a line of its own.
"""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from billing.models.keys import ID_LENGTH


class MonthKind(models.TextChoices):
    TIER = "tier"  # what tiers or packages of a price take off its price of an hour
    COMMIT = "commit"  # what a commitment covers
    PERCENT = "percent"  # off a line, by a discount
    AMOUNT = "amount"  # off the invoice, by a discount of so much money
    STORAGE = "storage"
    SHORTFALL = "shortfall"  # what was committed to and not used
    MINIMUM = "minimum"  # what lines lack of the least that was agreed on


OFF = (MonthKind.TIER, MonthKind.COMMIT, MonthKind.PERCENT, MonthKind.AMOUNT)


class MonthCharge(models.Model):
    """Its key is what it stands for: a line of a month, and what changes it. See RatedCharge."""

    pk = models.CompositePrimaryKey(
        "tenant_id", "billed_period_id", "kind", "source", "project_id", "offering_id", "price_version_id"
    )
    tenant_id = models.CharField(max_length=ID_LENGTH)
    period_id = models.BigIntegerField()  # the month that it is of
    billed_period_id = models.BigIntegerField()  # the month whose invoice carries it
    kind = models.CharField(max_length=9, choices=MonthKind)
    source = models.CharField(max_length=ID_LENGTH)  # what it follows from: a discount, an agreement, a price
    # The line: of what is of no offering, the kind stands in its place.
    project_id = models.CharField(max_length=ID_LENGTH, blank=True)
    offering_id = models.CharField(max_length=ID_LENGTH)
    price_version_id = models.BigIntegerField()
    n = models.PositiveIntegerField()  # when in the month's reckoning
    units = models.BigIntegerField(default=0)  # what it is of, where that can be counted, by its meter
    meter = models.CharField(max_length=20, blank=True, default="")
    base_num = models.DecimalField(max_digits=38, decimal_places=0)  # what it was worked out from
    exact_num = models.DecimalField(
        max_digits=38, decimal_places=0
    )  # over 3600·10⁹; less than nought takes off
    label = models.CharField(max_length=200)  # as invoices say it
    terms = models.JSONField(default=dict)  # what else whoever recomputes it must know
    recorded_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(kind__in=OFF, exact_num__lt=0) | Q(~Q(kind__in=OFF), exact_num__gt=0),
                name="month_charge_has_its_sign",
            ),
            models.CheckConstraint(condition=Q(kind__in=MonthKind.values), name="month_charge_kind_known"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.source}"

    @property
    def line(self) -> tuple[str, str, int]:
        """What makes its line: project, offering, price version."""
        return self.project_id, self.offering_id, self.price_version_id
