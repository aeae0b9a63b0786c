"""Invoices: a tenant's month as lines. A finalized invoice never changes."""

from datetime import datetime

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from billing.domain.tax import STANDARD, TaxTreatment
from billing.models.default_ids import ID_LENGTH, invoice_id
from billing.models.periods import BillingPeriod
from tenants.models.tenants import TenantOwned

MAX_PO_NUMBER_LENGTH = 60


class InvoiceStatus(models.TextChoices):
    DRAFT = "draft"
    CLOSING = "closing"
    FINALIZED = "finalized"
    PAID = "paid"
    PARTIALLY_PAID = "partially_paid"
    UNCOLLECTIBLE = "uncollectible"  # written off
    REPORTED = "reported"  # a report of costs that nobody pays
    VOID = "void"  # cancelled: a credit note credits all of it


OPEN_STATUSES = (InvoiceStatus.FINALIZED, InvoiceStatus.PARTIALLY_PAID)  # something may be due
OPEN_AMOUNT = F("total") - F("settled") - F("received")  # what is due on an open invoice, in queries


class InvoiceSeries(models.Model):
    """A gapless number series: its row is locked while a run assigns numbers."""

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
    total = models.BigIntegerField(default=0)  # minor units: the lines and their tax
    tax = models.BigIntegerField(default=0, db_default=0)
    treatment = models.CharField(max_length=14, blank=True, default="", db_default="")
    # Of it, what is no longer due without a payment: credited since, or drawn from the tenant's balance.
    settled = models.BigIntegerField(default=0, db_default=0)
    # Of it, the money that came in for it, by payments and bank transfers. PostgreSQL adds it up; no code writes it.
    received = models.BigIntegerField(default=0, db_default=0)
    refreshed_at = models.DateTimeField()
    finalized_at = models.DateTimeField(null=True)
    paid_at = models.DateTimeField(null=True)
    due_at = models.DateTimeField(null=True)  # payment deadline; null on older invoices
    # End of the dispute window; null on older invoices.
    disputable_until = models.DateTimeField(null=True)
    # The parties as of finalization; later changes of address or name affect later invoices only.
    customer = models.JSONField(null=True)
    supplier = models.JSONField(null=True)
    # The month's agreements as of finalization, as JSON copied verbatim to its bundle; null on older invoices.
    agreed = models.TextField(null=True)
    collected = models.BooleanField(default=False)  # collected through a gateway; otherwise paid by bank transfer
    revision = models.PositiveSmallIntegerField(default=0, db_default=0)  # of its month when it was opened
    rebills = models.CharField(max_length=ID_LENGTH, blank=True, default="", db_default="")  # the invoice it replaces
    # Leases without a sign of life at its end: their later seconds are late usage of a following invoice.
    unobserved_leases = ArrayField(models.CharField(max_length=ID_LENGTH), default=list, db_default=[])
    # As of finalization, as the parties are: the customer's own order number, and our bank account.
    po_number = models.CharField(max_length=MAX_PO_NUMBER_LENGTH, blank=True, default="", db_default="")
    bank_account = models.JSONField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "period"], condition=~Q(status="void"), name="one_invoice_per_period"
            ),
            models.UniqueConstraint(fields=["series", "number"], name="invoice_number_once"),
            models.CheckConstraint(condition=Q(status__in=InvoiceStatus.values), name="invoice_status_known"),
            models.CheckConstraint(
                condition=Q(treatment__in=[each.value for each in TaxTreatment]), name="treatment_known"
            ),
            models.CheckConstraint(condition=~Q(status="paid") | Q(paid_at__isnull=False), name="paid_at_a_moment"),
            models.CheckConstraint(
                condition=Q(settled=0) | Q(settled__gt=0, settled__lte=F("total"), number__isnull=False),
                name="settled_is_a_part_of_it",
            ),
            models.CheckConstraint(
                condition=Q(received__gte=0, received__lte=F("total") - F("settled")) | Q(received=0),
                name="received_is_a_part_of_it",
            ),
        ]
        indexes = [
            models.Index(fields=["finalized_at"], name="invoice_still_open", condition=Q(status__in=OPEN_STATUSES))
        ]

    def __str__(self) -> str:
        return f"{self.series}-{self.number:04d}" if self.number else f"draft {self.period_id}"

    @property
    def month(self) -> str:
        """The month for people, such as `October 2026`; reads the period."""
        return f"{datetime.fromisoformat(self.period.label + '-01'):%B %Y}"

    @property
    def subtotal(self) -> int:
        """The sum of the lines before tax, in minor units."""
        return self.total - self.tax

    @property
    def to_pay(self) -> int:
        """The amount that payments cover: the total less what was settled otherwise."""
        return self.total - self.settled

    @property
    def due(self) -> int:
        """The amount that is still to be paid now, in minor units.

        OPEN_AMOUNT says it in queries.
        """
        return self.to_pay - self.received if self.status in OPEN_STATUSES else 0

    @property
    def paid(self) -> int:
        """The amount that payments and bank transfers paid; minor units."""
        return self.to_pay if self.status == InvoiceStatus.PAID else self.received

    @property
    def payment_reference(self) -> str:
        """What a bank transfer should say so that it is found; empty for a draft."""
        return str(self) if self.number else ""


class LineKind(models.TextChoices):
    USAGE = "usage"  # seconds at a price
    STORAGE = "storage"
    SHORTFALL = "shortfall", "Unused commitment"
    MINIMUM = "minimum", "Minimum spend"


class InvoiceLine(TenantOwned):
    """Charges of one project, offering and price version with the month's adjustments.

    Some lines consist of an adjustment alone, such as a minimum. A line is rounded once, half up.
    """

    id = models.BigAutoField(primary_key=True)
    # No index needed: each unique key below begins with it.
    invoice = models.ForeignKey(Invoice, on_delete=models.CASCADE, related_name="lines", db_index=False)
    n = models.PositiveIntegerField()
    project_id = models.CharField(max_length=ID_LENGTH)
    offering_id = models.CharField(max_length=ID_LENGTH)
    price_version_id = models.BigIntegerField()
    # For kinds other than usage, offering_id holds the kind, so that line_once still works for older releases.
    kind = models.CharField(max_length=9, choices=LineKind, default=LineKind.USAGE, db_default="usage")
    leases = models.PositiveIntegerField()  # count
    unit_seconds = models.BigIntegerField()  # after given_back_s is subtracted
    given_back_s = models.BigIntegerField(default=0, db_default=0)
    exact_num = models.DecimalField(max_digits=38, decimal_places=0)
    # Of it, the month's adjustments, which are mostly negative; the rest is usage.
    month_num = models.DecimalField(max_digits=38, decimal_places=0, default=0, db_default=0)
    minor = models.BigIntegerField()
    tax_category = models.CharField(max_length=10, default=STANDARD, db_default=STANDARD)
    tax_minor = models.BigIntegerField(default=0, db_default=0)  # its share of its category's tax

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
        """The usage charges, over 3600·10⁹, before the month's adjustments."""
        return int(self.exact_num) - int(self.month_num)

    @property
    def is_usage(self) -> bool:
        """Whether the line is usage of an offering at a price."""
        return self.kind == LineKind.USAGE
