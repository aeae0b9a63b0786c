"""Invoice adjustments: amounts of a month that are not usage. Append-only.

They are written once, in the transaction that closes the month. A reduction belongs to the line it
reduces; an addition is a line of its own.
"""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from billing.models.default_ids import ID_LENGTH


class AdjustmentKind(models.TextChoices):
    TIER = "tier"  # reduction by a price's tiers or packages
    COMMIT = "commit"  # reduction for usage covered by a commitment
    PERCENT = "percent"  # percentage discount on a line
    AMOUNT = "amount"  # fixed discount on the invoice
    STORAGE = "storage"
    SHORTFALL = "shortfall"  # committed but not used
    MINIMUM = "minimum"  # shortfall of the agreed minimum spend


REDUCTION_KINDS = (AdjustmentKind.TIER, AdjustmentKind.COMMIT, AdjustmentKind.PERCENT, AdjustmentKind.AMOUNT)


class InvoiceAdjustment(models.Model):
    """An adjustment of a month's line; its key identifies what it is, as in RatedCharge."""

    pk = models.CompositePrimaryKey(
        "tenant_id", "billed_period_id", "revision", "kind", "source", "project_id", "offering_id", "price_version_id"
    )
    tenant_id = models.CharField(max_length=ID_LENGTH)
    period_id = models.BigIntegerField()  # the month it was computed for
    billed_period_id = models.BigIntegerField()  # the month whose invoice carries it
    revision = models.PositiveSmallIntegerField(default=0, db_default=0)  # that of the invoice
    kind = models.CharField(max_length=9, choices=AdjustmentKind)
    source = models.CharField(max_length=ID_LENGTH)  # its cause: a discount, an agreement, a price
    # The line; without an offering, offering_id holds the kind.
    project_id = models.CharField(max_length=ID_LENGTH, blank=True)
    offering_id = models.CharField(max_length=ID_LENGTH)
    price_version_id = models.BigIntegerField()
    n = models.PositiveIntegerField()  # its position in the month's computation
    units = models.BigIntegerField(default=0)  # the usage it is for, by `meter`, if any
    meter = models.CharField(max_length=20, blank=True, default="")
    base_num = models.DecimalField(max_digits=38, decimal_places=0)  # what it was computed from
    exact_num = models.DecimalField(max_digits=38, decimal_places=0)  # over 3600·10⁹; negative is a reduction
    label = models.CharField(max_length=200)  # as shown on invoices
    terms = models.JSONField(default=dict)  # further inputs needed to recompute it
    recorded_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(kind__in=REDUCTION_KINDS, exact_num__lt=0)
                | Q(~Q(kind__in=REDUCTION_KINDS), exact_num__gt=0),
                name="month_charge_has_its_sign",
            ),
            models.CheckConstraint(condition=Q(kind__in=AdjustmentKind.values), name="month_charge_kind_known"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.source}"

    @property
    def line(self) -> tuple[str, str, int]:
        """The key of its line: project, offering, price version."""
        return self.project_id, self.offering_id, self.price_version_id
