"""The ledger: accounts, transfers between two of them, balances, and seals.

A transfer is one row with a debit and a credit account, so the books balance by construction. It is
never changed or removed: a mistake is reversed by another transfer, once. The guards in PostgreSQL
are in `billing/migrations/sql/triggers_ledger.sql`.
"""

from typing import Self

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from billing.domain.ledger import TENANT_ACCOUNT_TYPES, AccountType
from billing.models.default_ids import ID_LENGTH
from tenants.models.tenants import Tenant, TenantOwned

ACCOUNT_TYPE_CHOICES = [(each.value, each.value) for each in AccountType]
TENANT_TYPES = sorted(each.value for each in TENANT_ACCOUNT_TYPES)
PLATFORM_TYPES = sorted(each.value for each in set(AccountType) - TENANT_ACCOUNT_TYPES)


class TransferKind(models.TextChoices):
    INVOICE = "invoice"  # an invoice became final
    PAYMENT = "payment"  # an invoice was paid
    VOID = "void"  # an invoice was cancelled
    CREDIT = "credit"  # a credit note was issued
    DRAW = "draw"  # an invoice was paid from balance or grant
    GRANT = "grant"  # credit was given
    TOPUP = "topup"  # money was added to a wallet
    REFUND = "refund"  # money was refunded to the payment card, or a refund failed
    LAPSE = "lapse"  # the unused rest of an expired grant
    RECEIPT = "receipt"  # money came in by bank transfer
    REVERSAL = "reversal"  # a bank receipt was wrong, or the bank took the money back
    WRITE_OFF = "write_off"  # an invoice is not collected any more, or is again


class LedgerAccount(models.Model):
    """An account in one currency, of a tenant or of the platform (no tenant)."""

    id = models.BigAutoField(primary_key=True)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", null=True)
    type = models.CharField(max_length=12, choices=ACCOUNT_TYPE_CHOICES)
    currency = models.CharField(max_length=3)
    # A grant or other owner of a separate account of this type; empty for the shared one.
    ref = models.CharField(max_length=ID_LENGTH, blank=True, default="", db_default="")
    opened_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "type", "currency", "ref"], name="ledger_account_once", nulls_distinct=False
            ),
            models.CheckConstraint(
                condition=Q(type__in=TENANT_TYPES, tenant__isnull=False)
                | Q(type__in=PLATFORM_TYPES, tenant__isnull=True),
                name="ledger_account_is_somebodys",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.currency}"


class TransferQuerySet(models.QuerySet["LedgerTransfer"]):
    def for_ref(self, ref: str) -> Self:
        """Return the transfers of a reference, such as an invoice, by the index on `idem`."""
        return self.filter(idem__gt=f"{ref}:", idem__lt=f"{ref};")


class LedgerTransfer(models.Model):
    """An amount moved from the debited to the credited account. Append-only.

    Foreign keys are checked once per statement (triggers_ledger.sql), not row by row.
    """

    id = models.BigAutoField(primary_key=True)
    tenant_id = models.CharField(max_length=ID_LENGTH)
    debit_account = models.ForeignKey(
        LedgerAccount, on_delete=models.DO_NOTHING, related_name="debits", db_constraint=False, db_index=False
    )
    credit_account = models.ForeignKey(
        LedgerAccount, on_delete=models.DO_NOTHING, related_name="credits", db_constraint=False, db_index=False
    )
    currency = models.CharField(max_length=3)
    minor = models.BigIntegerField()
    at = models.DateTimeField()  # when the booked event happened
    kind = models.CharField(max_length=20, choices=TransferKind)
    ref = models.CharField(max_length=ID_LENGTH)  # the invoice or other object of the event
    reverses_id = models.BigIntegerField(null=True)  # the transfer that this one reverses
    # Begins with `ref` and a colon, so this index finds everything about an invoice. Sorted bytewise.
    idem = models.CharField(max_length=120, db_collation="C")
    recorded_at = models.DateTimeField(db_default=Now())  # when the row was written
    objects = TransferQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["idem"], name="transfer_once"),
            models.UniqueConstraint(
                fields=["tenant_id", "reverses_id"],
                condition=Q(reverses_id__isnull=False),
                name="transfer_reversed_once",
            ),
            models.CheckConstraint(condition=Q(minor__gt=0), name="transfer_of_something"),
            models.CheckConstraint(condition=~Q(debit_account=F("credit_account")), name="transfer_between_two"),
        ]
        indexes = [BrinIndex(fields=["recorded_at"], name="transfer_recorded", autosummarize=True)]

    def __str__(self) -> str:
        return self.idem


class AccountBalance(models.Model):
    """The balance of an account, on its normal side (debit or credit).

    PostgreSQL updates it with each transfer.
    """

    account = models.OneToOneField(LedgerAccount, on_delete=models.PROTECT, primary_key=True, related_name="balance")
    tenant = models.ForeignKey(
        Tenant, on_delete=models.PROTECT, related_name="+", null=True, db_constraint=False, db_index=False
    )
    minor = models.BigIntegerField(default=0)
    held_minor = models.BigIntegerField(default=0, db_default=0)  # reserved, so not available
    floor = models.BigIntegerField(null=True)  # lowest allowed balance; None: no limit

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(floor__isnull=True) | Q(minor__gte=F("floor") + F("held_minor")),
                name="balance_above_its_floor",
            ),
            models.CheckConstraint(condition=Q(held_minor__gte=0), name="balance_holds_no_less_than_nothing"),
        ]

    def __str__(self) -> str:
        return f"{self.account_id}: {self.minor}"


class LedgerSeal(TenantOwned):
    """A sealed section of a tenant's hash chain within one UTC day. Append-only.

    It lists its transfers and the hash after the last of them.
    """

    id = models.BigAutoField(primary_key=True)
    n = models.PositiveBigIntegerField()  # 1, 2, 3 … of its tenant
    day = models.DateField()
    transfers = ArrayField(models.BigIntegerField())  # in the order in which they are chained
    before = models.BinaryField()  # hash of the previous seal, n - 1
    hash = models.BinaryField()
    sealed_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "n"], name="seal_once")]
        indexes = [models.Index(fields=["sealed_at"], name="sealed_lately")]

    def __str__(self) -> str:
        return f"{self.tenant_id} {self.n}"
