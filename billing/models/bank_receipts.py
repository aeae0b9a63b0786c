"""Money that came in by bank transfer, and which invoices it paid.

What pays no invoice is on the tenant's balance. A receipt never changes; a wrong one is reversed, once.
The rules are in triggers_bank_receipts.sql.
"""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from billing.models.default_ids import ID_LENGTH, bank_receipt_id, bank_receipt_part_id
from billing.models.invoices import Invoice
from tenants.models.tenants import TenantOwned

MAX_REFERENCE_LENGTH, MAX_PAYER_LENGTH, MAX_REASON_LENGTH, MAX_PERSON_LENGTH = 500, 140, 200, 254


class BankReceipt(TenantOwned):
    """A transfer to our bank account, as an operator recorded it."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=bank_receipt_id)
    currency = models.CharField(max_length=3)
    minor = models.BigIntegerField()
    received_on = models.DateField()
    reference = models.CharField(max_length=MAX_REFERENCE_LENGTH, blank=True, default="")  # what the transfer said
    payer = models.CharField(max_length=MAX_PAYER_LENGTH, blank=True, default="")
    payer_account = models.CharField(max_length=40, blank=True, default="")
    wanted = ArrayField(models.CharField(max_length=ID_LENGTH), default=list)  # invoices it was meant for, in order
    # A card payment of such an invoice was in progress, so that its part is on the balance until that is settled.
    waits = models.BooleanField(default=False)
    idem = models.CharField(max_length=120)  # idempotency key
    recorded_at = models.DateTimeField()
    recorded_by = models.CharField(max_length=MAX_PERSON_LENGTH)
    reversed_at = models.DateTimeField(null=True)
    reversed_by = models.CharField(max_length=MAX_PERSON_LENGTH, blank=True, default="")
    reversal_reason = models.CharField(max_length=MAX_REASON_LENGTH, blank=True, default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "idem"], name="bank_receipt_recorded_once"),
            models.CheckConstraint(condition=Q(minor__gt=0), name="bank_receipt_of_something"),
            models.CheckConstraint(
                condition=Q(reversed_at=None, reversal_reason="")
                | Q(reversed_at__isnull=False) & ~Q(reversal_reason=""),
                name="bank_receipt_reversed_for_a_reason",
            ),
        ]
        indexes = [
            models.Index(fields=["tenant", "-recorded_at"], name="bank_receipts_of_tenant"),
            models.Index(fields=["recorded_at"], name="bank_receipt_waits", condition=Q(waits=True)),
        ]

    def __str__(self) -> str:
        return self.pk


class BankReceiptPart(TenantOwned):
    """What a receipt paid of an invoice. Append-only; it counts unless its receipt was reversed."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=bank_receipt_part_id)
    receipt = models.ForeignKey(BankReceipt, on_delete=models.PROTECT, related_name="parts")
    invoice = models.ForeignKey(Invoice, on_delete=models.PROTECT, related_name="bank_parts")
    minor = models.BigIntegerField()
    at = models.DateTimeField()
    from_balance = models.BooleanField(default=False)  # assigned later, when it was on the balance already
    recovered = models.BooleanField(default=False)  # the invoice had been written off
    recovered_tax = models.BigIntegerField(default=0, db_default=0)  # of it, tax that is owed to a state again

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(minor__gt=0), name="bank_receipt_part_of_something"),
            models.CheckConstraint(
                condition=Q(recovered_tax=0) | Q(recovered=True, recovered_tax__gt=0, recovered_tax__lte=F("minor")),
                name="recovered_tax_is_a_part",
            ),
        ]

    def __str__(self) -> str:
        return self.pk
