"""Imported bank statements and their entries, which operators book or dismiss.

They are of no tenant: who paid is only known once an operator has confirmed it.
"""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from billing.models.bank_receipts import MAX_PERSON_LENGTH, MAX_REASON_LENGTH
from billing.models.default_ids import ID_LENGTH, bank_entry_id, bank_statement_id


class BankStatement(models.Model):
    """A file that an operator imported; the same file again changes nothing."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=bank_statement_id)
    file_name = models.CharField(max_length=200)
    sha256 = models.CharField(max_length=64, unique=True)
    format = models.CharField(max_length=8)  # camt053 or csv
    entries_found = models.PositiveIntegerField()
    entries_new = models.PositiveIntegerField()
    is_repeated = False  # whether this import was asked for again, and changed nothing
    imported_at = models.DateTimeField()
    imported_by = models.CharField(max_length=MAX_PERSON_LENGTH)

    def __str__(self) -> str:
        return self.file_name


class BankEntryStatus(models.TextChoices):
    OPEN = "open"  # waits for an operator
    BOOKED = "booked"  # recorded as a receipt, or its receipt was reversed
    DISMISSED = "dismissed"  # not from a tenant, for a reason
    OUTGOING = "outgoing"  # our own payment: nothing to do


class BankEntry(models.Model):
    """A booked movement on our bank account."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=bank_entry_id)
    statement = models.ForeignKey(BankStatement, on_delete=models.PROTECT, related_name="entries")
    key = models.CharField(max_length=64, unique=True)  # its identity in every file that contains it
    account = models.CharField(max_length=500, blank=True, default="")
    booked_on = models.DateField()
    minor = models.BigIntegerField()
    currency = models.CharField(max_length=3)
    incoming = models.BooleanField()
    returned = models.BooleanField(default=False)
    counterparty = models.CharField(max_length=500, blank=True, default="")
    counterparty_account = models.CharField(max_length=40, blank=True, default="")
    end_to_end_id = models.CharField(max_length=140, blank=True, default="")
    bank_reference = models.CharField(max_length=140, blank=True, default="")
    references = ArrayField(models.CharField(max_length=500), default=list)
    remittance = models.CharField(max_length=500, blank=True, default="")
    status = models.CharField(max_length=9, choices=BankEntryStatus, default=BankEntryStatus.OPEN)
    receipt = models.CharField(max_length=ID_LENGTH, blank=True, default="")  # recorded from it, or reversed by it
    reason = models.CharField(max_length=MAX_REASON_LENGTH, blank=True, default="")  # why it was dismissed
    decided_at = models.DateTimeField(null=True)
    decided_by = models.CharField(max_length=MAX_PERSON_LENGTH, blank=True, default="")

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(minor__gt=0), name="bank_entry_of_something"),
            models.CheckConstraint(condition=Q(status__in=BankEntryStatus.values), name="bank_entry_status_known"),
            models.CheckConstraint(
                condition=Q(status__in=["open", "outgoing"], decided_at=None)
                | Q(status="booked", decided_at__isnull=False) & ~Q(receipt="")
                | Q(status="dismissed", decided_at__isnull=False) & ~Q(reason=""),
                name="bank_entry_decided_once",
            ),
        ]
        indexes = [
            models.Index(fields=["-booked_on", "-id"], name="bank_entries_by_day"),
            models.Index(fields=["booked_on"], name="bank_entry_waits", condition=Q(status="open")),
        ]

    def __str__(self) -> str:
        return self.pk

    @property
    def words(self) -> str:
        """All that it says about its purpose."""
        return " ".join(part for part in (*self.references, self.remittance, self.end_to_end_id) if part)
