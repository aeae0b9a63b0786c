"""A tenant's month as lines; once finalized it never changes."""

from datetime import datetime

from django.db import models
from django.db.models import F, Q

from billing.domain.tax import STANDARD, Treatment
from billing.models.keys import ID_LENGTH, invoice_id
from billing.models.periods import BillingPeriod
from tenants.models.tenants import TenantOwned


class InvoiceStatus(models.TextChoices):
    DRAFT = "draft"
    CLOSING = "closing"
    FINALIZED = "finalized"
    PAID = "paid"
    PARTIALLY_PAID = "partially_paid"
    UNCOLLECTIBLE = "uncollectible"
    VOID = "void"


class InvoiceSeries(models.Model):
    """Numbers without gaps: one row is locked while a run hands them out."""

    series = models.CharField(primary_key=True, max_length=20)
    next_number = models.PositiveIntegerField(default=1)

    def __str__(self) -> str:
        return self.series


class Invoice(TenantOwned):
    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=invoice_id)
    period = models.ForeignKey(BillingPeriod, on_delete=models.PROTECT)
    status = models.CharField(max_length=14, choices=InvoiceStatus, default=InvoiceStatus.DRAFT)
    series = models.CharField(max_length=20, null=True)
    number = models.PositiveIntegerField(null=True)
    currency = models.CharField(max_length=3)
    total = models.BigIntegerField(default=0)  # minor units: the sum of the lines, and the tax on them
    tax = models.BigIntegerField(default=0, db_default=0)
    treatment = models.CharField(max_length=14, blank=True, default="", db_default="")
    # Of it, what is due no longer though nobody paid it: credited since, or drawn from the tenant's balance.
    settled = models.BigIntegerField(default=0, db_default=0)
    refreshed_at = models.DateTimeField()
    finalized_at = models.DateTimeField(null=True)
    paid_at = models.DateTimeField(null=True)
    due_at = models.DateTimeField(null=True)  # when it should be paid by; older ones do not say
    # Before when its lines can be disputed; older ones do not say.
    disputable_until = models.DateTimeField(null=True)
    # Who stood on it when it became final; whoever moves or is renamed later does so on later ones.
    customer = models.JSONField(null=True)
    supplier = models.JSONField(null=True)
    # What was agreed of its month when it became final, as JSON that its bundle says word for word; older ones do not.
    agreed = models.TextField(null=True)
    collected = models.BooleanField(
        default=False
    )  # became final where payments are collected; else: by transfer

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "period"], condition=~Q(status="void"), name="one_invoice_per_period"
            ),
            models.UniqueConstraint(fields=["series", "number"], name="invoice_number_once"),
            models.CheckConstraint(condition=Q(status__in=InvoiceStatus.values), name="invoice_status_known"),
            models.CheckConstraint(
                condition=Q(treatment__in=[each.value for each in Treatment]), name="treatment_known"
            ),
            models.CheckConstraint(
                condition=~Q(status="paid") | Q(paid_at__isnull=False), name="paid_at_a_moment"
            ),
            models.CheckConstraint(
                condition=Q(settled=0) | Q(settled__gt=0, settled__lte=F("total"), number__isnull=False),
                name="settled_is_a_part_of_it",
            ),
        ]
        indexes = [
            models.Index(fields=["finalized_at"], name="invoice_to_be_paid", condition=Q(status="finalized"))
        ]

    def __str__(self) -> str:
        return f"{self.series}-{self.number:04d}" if self.number else f"draft {self.period_id}"

    @property
    def month(self) -> str:
        """Its month as people say it: `October 2026`. Needs its period."""
        return f"{datetime.fromisoformat(self.period.label + '-01'):%B %Y}"

    @property
    def subtotal(self) -> int:
        """What its lines come to, before tax; minor units."""
        return self.total - self.tax

    @property
    def to_pay(self) -> int:
        """What a payment of it is of, or was: all that was not settled otherwise; minor units."""
        return self.total - self.settled

    @property
    def due(self) -> int:
        """What is still to be paid of it now; minor units."""
        return self.to_pay if self.status == InvoiceStatus.FINALIZED else 0


class LineKind(models.TextChoices):
    USAGE = "usage"  # seconds at a price
    STORAGE = "storage"
    SHORTFALL = "shortfall", "Committed and not used"
    MINIMUM = "minimum", "Minimum spend"


class InvoiceLine(TenantOwned):
    """RatedCharges of one project, offering and price version, less what the month takes off; or what it adds.

    Rounded once, half up.
    """

    id = models.BigAutoField(primary_key=True)
    # Without an index: each of the keys below begins with it.
    invoice = models.ForeignKey(Invoice, on_delete=models.CASCADE, related_name="lines", db_index=False)
    n = models.PositiveIntegerField()
    project_id = models.CharField(max_length=ID_LENGTH)
    offering_id = models.CharField(max_length=ID_LENGTH)
    price_version_id = models.BigIntegerField()
    # Of another kind than usage, the kind stands for the offering, so that older releases still write by line_once.
    kind = models.CharField(max_length=9, choices=LineKind, default=LineKind.USAGE, db_default="usage")
    leases = models.PositiveIntegerField()  # how many are in it
    unit_seconds = models.BigIntegerField()  # what is left after those were given back
    given_back_s = models.BigIntegerField(default=0, db_default=0)
    exact_num = models.DecimalField(max_digits=38, decimal_places=0)
    # Of it, what MonthCharges come to, which is mostly less than nought: the rest is of its seconds.
    month_num = models.DecimalField(max_digits=38, decimal_places=0, default=0, db_default=0)
    minor = models.BigIntegerField()
    tax_category = models.CharField(max_length=10, default=STANDARD, db_default=STANDARD)
    tax_minor = models.BigIntegerField(default=0, db_default=0)  # its part of the tax on its category

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["invoice", "n"], name="line_number_once"),
            models.UniqueConstraint(
                fields=["invoice", "project_id", "offering_id", "price_version_id"], name="line_once"
            ),
        ]

    def __str__(self) -> str:
        return f"line {self.n}"

    @property
    def charged_num(self) -> int:
        """What its seconds come to, over 3600·10⁹, before the month takes anything off."""
        return int(self.exact_num) - int(self.month_num)

    @property
    def is_usage(self) -> bool:
        """Whether it is of an offering at a price; any other stands for itself."""
        return self.kind == LineKind.USAGE
