"""Tax rates with validity, tax categories of offerings, and tax on invoices."""

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import DateRangeField, RangeOperators
from django.db import models
from django.db.models import Q

from billing.domain.tax import STANDARD
from billing.models.default_ids import ID_LENGTH, tax_rate_id
from billing.models.invoices import Invoice
from broker.models import Offering
from tenants.models.tenants import TenantOwned


class TaxCategory(models.TextChoices):
    STANDARD = STANDARD
    REDUCED = "reduced"
    EXEMPT = "exempt"


class TaxRate(models.Model):
    """A country's rate for a category in a range of days, as laws define them."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=tax_rate_id)
    jurisdiction = models.CharField(max_length=2)  # ISO 3166
    category = models.CharField(max_length=10, choices=TaxCategory)
    rate_bp = models.PositiveIntegerField()  # 1900 is 19 %
    valid = DateRangeField()  # [from, until); no end means the current rate
    # Whether a final invoice uses it: PostgreSQL sets this, and from then on the rate never changes.
    used = models.BooleanField(default=False, db_default=False)
    created_by = models.CharField(max_length=254, blank=True, default="")
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            ExclusionConstraint(
                name="one_tax_rate_at_a_time",
                expressions=[
                    ("jurisdiction", RangeOperators.EQUAL),
                    ("category", RangeOperators.EQUAL),
                    ("valid", RangeOperators.OVERLAPS),
                ],
            ),
            models.CheckConstraint(condition=Q(rate_bp__lte=10_000), name="tax_takes_no_more_than_all"),
            models.CheckConstraint(condition=Q(category__in=TaxCategory.values), name="tax_category_known"),
        ]

    def __str__(self) -> str:
        return f"{self.jurisdiction} {self.category} {self.rate_bp}"


class OfferingTaxCategory(models.Model):
    """The tax category of an offering that is not taxed at the standard one."""

    offering = models.OneToOneField(Offering, on_delete=models.PROTECT, primary_key=True, related_name="taxed_as")
    category = models.CharField(max_length=10, choices=TaxCategory)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(category__in=TaxCategory.values), name="taxed_as_known")]

    def __str__(self) -> str:
        return f"{self.offering_id} {self.category}"


class InvoiceTax(TenantOwned):
    """The tax on an invoice's amount of one category; its lines' taxes sum to it."""

    id = models.BigAutoField(primary_key=True)
    # No index needed: the unique key below begins with it.
    invoice = models.ForeignKey(Invoice, on_delete=models.CASCADE, related_name="taxes", db_index=False)
    category = models.CharField(max_length=10, choices=TaxCategory)
    rate = models.ForeignKey(TaxRate, on_delete=models.PROTECT, null=True, related_name="+")
    rate_bp = models.PositiveIntegerField(null=True)  # null on drafts only: owed, but no rate is configured
    net = models.BigIntegerField()  # minor units
    tax = models.BigIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["invoice", "category"], name="one_tax_per_category"),
            models.CheckConstraint(condition=Q(category__in=TaxCategory.values), name="invoice_tax_known"),
            models.CheckConstraint(condition=Q(rate_bp__isnull=False) | Q(tax=0), name="no_tax_without_rate"),
        ]

    def __str__(self) -> str:
        return f"{self.category} {self.rate_bp}"
