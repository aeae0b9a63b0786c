"""The ledger: accounts, transfers between two of them, and what the transfers of each account come to.

A transfer is one row with a debit and a credit, so the books balance by construction. It is never changed or removed:
a mistake is reversed by another transfer, once. What PostgreSQL refuses stands in migration 0011.
"""

from typing import Self

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from billing.domain.ledger import OF_TENANTS, AccountType
from billing.models.keys import ID_LENGTH
from tenants.models.tenants import Tenant, TenantOwned

TYPES = [(each.value, each.value) for each in AccountType]
THEIRS = sorted(each.value for each in OF_TENANTS)
OURS = sorted(each.value for each in set(AccountType) - OF_TENANTS)


class TransferKind(models.TextChoices):
    INVOICE = "invoice"  # an invoice became final
    PAYMENT = "payment"  # it was collected
    VOID = "void"  # it was taken back
    CREDIT = "credit"  # a part of it was given back
    DRAW = "draw"  # a part of it was settled from the tenant's balance, or from a grant
    GRANT = "grant"  # credit was given
    TOPUP = "topup"  # money was put into a wallet
    REFUND = "refund"  # money went back to the card that it came from, or did not after all
    LAPSE = "lapse"  # what was left of it when it ended


class LedgerAccount(models.Model):
    """One account in one currency: of a tenant, or of the platform, which has none."""

    id = models.BigAutoField(primary_key=True)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", null=True)
    type = models.CharField(max_length=12, choices=TYPES)
    currency = models.CharField(max_length=3)
    # Whatever has an account of its own below a type, such as a grant; nothing where one account does for all.
    ref = models.CharField(max_length=ID_LENGTH, blank=True, default="", db_default="")
    opened_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "type", "currency", "ref"],
                name="ledger_account_once",
                nulls_distinct=False,
            ),
            models.CheckConstraint(
                condition=Q(type__in=THEIRS, tenant__isnull=False) | Q(type__in=OURS, tenant__isnull=True),
                name="ledger_account_is_somebodys",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.currency}"


class TransferQuerySet(models.QuerySet["LedgerTransfer"]):
    def about(self, ref: str) -> Self:
        """Return what stands for this, such as an invoice, by the index that there is."""
        return self.filter(idem__gt=f"{ref}:", idem__lt=f"{ref};")


class LedgerTransfer(models.Model):
    """An amount moves from the account that is debited to the one that is credited. Append-only.

    Keys to other tables are checked for a whole statement at once (migration 0011), not row by row.
    """

    id = models.BigAutoField(primary_key=True)
    tenant_id = models.CharField(max_length=ID_LENGTH)
    debit_account = models.ForeignKey(
        LedgerAccount, on_delete=models.DO_NOTHING, related_name="debits", db_constraint=False, db_index=False
    )
    credit_account = models.ForeignKey(
        LedgerAccount,
        on_delete=models.DO_NOTHING,
        related_name="credits",
        db_constraint=False,
        db_index=False,
    )
    currency = models.CharField(max_length=3)
    minor = models.BigIntegerField()
    at = models.DateTimeField()  # when what it stands for happened
    kind = models.CharField(max_length=20, choices=TransferKind)
    ref = models.CharField(max_length=ID_LENGTH)  # the invoice or whatever else it stands for
    reverses_id = models.BigIntegerField(null=True)  # the transfer that this one takes back
    # Begins with `ref` and a colon, so that everything about an invoice is found by this index. Sorted bytewise.
    idem = models.CharField(max_length=120, db_collation="C")
    recorded_at = models.DateTimeField(db_default=Now())  # when it was written, whenever it happened
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
            models.CheckConstraint(
                condition=~Q(debit_account=F("credit_account")), name="transfer_between_two"
            ),
        ]
        indexes = [BrinIndex(fields=["recorded_at"], name="transfer_recorded", autosummarize=True)]

    def __str__(self) -> str:
        return self.idem


class AccountBalance(models.Model):
    """What an account's transfers come to, on the side on which it grows. Written with each transfer, by PostgreSQL."""

    account = models.OneToOneField(
        LedgerAccount, on_delete=models.PROTECT, primary_key=True, related_name="balance"
    )
    tenant = models.ForeignKey(
        Tenant, on_delete=models.PROTECT, related_name="+", null=True, db_constraint=False, db_index=False
    )
    minor = models.BigIntegerField(default=0)
    held_minor = models.BigIntegerField(default=0, db_default=0)  # set aside, and therefore not to be drawn
    floor = models.BigIntegerField(null=True)  # None lets it go anywhere

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
    """A stretch of a tenant's chain within one UTC day: its transfers, and the hash it ends with. Append-only."""

    id = models.BigAutoField(primary_key=True)
    n = models.PositiveBigIntegerField()  # 1, 2, 3 … of its tenant
    day = models.DateField()
    transfers = ArrayField(models.BigIntegerField())  # in the order in which they are chained
    before = models.BinaryField()  # the hash of seal n - 1
    hash = models.BinaryField()
    sealed_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "n"], name="seal_once")]
        indexes = [models.Index(fields=["sealed_at"], name="sealed_lately")]

    def __str__(self) -> str:
        return f"{self.tenant_id} {self.n}"
