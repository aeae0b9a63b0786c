"""Write-offs: what of an invoice will not be collected any more, with a reason."""

from django.db import models
from django.db.models import F, Q

from billing.models.bank_receipts import MAX_PERSON_LENGTH, MAX_REASON_LENGTH
from billing.models.default_ids import ID_LENGTH, write_off_id
from billing.models.invoices import Invoice
from tenants.models.tenants import TenantOwned


class WriteOff(TenantOwned):
    """The amount due on an invoice when it was written off; undone at most once."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=write_off_id)
    invoice = models.ForeignKey(Invoice, on_delete=models.PROTECT, related_name="write_offs")
    currency = models.CharField(max_length=3)
    minor = models.BigIntegerField()
    tax = models.BigIntegerField(default=0, db_default=0)  # of it, the tax that is no longer owed to a state
    reason = models.CharField(max_length=MAX_REASON_LENGTH)
    at = models.DateTimeField()
    by = models.CharField(max_length=MAX_PERSON_LENGTH)
    undone_at = models.DateTimeField(null=True)
    undone_minor = models.BigIntegerField(default=0)  # what was due again: less by what was recovered since
    undone_tax = models.BigIntegerField(default=0, db_default=0)  # of it
    undone_by = models.CharField(max_length=MAX_PERSON_LENGTH, blank=True, default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["invoice"], condition=Q(undone_at=None), name="one_write_off_in_force"),
            models.CheckConstraint(condition=Q(minor__gt=0), name="write_off_of_something"),
            models.CheckConstraint(
                condition=Q(undone_at=None, undone_minor=0)
                | Q(undone_at__isnull=False, undone_minor__gt=0, undone_minor__lte=F("minor")),
                name="write_off_undone_in_part",
            ),
            models.CheckConstraint(
                condition=Q(tax__gte=0, tax__lte=F("minor"), undone_tax__gte=0, undone_tax__lte=F("tax")),
                name="tax_of_a_write_off_is_a_part",
            ),
        ]

    def __str__(self) -> str:
        return self.pk
