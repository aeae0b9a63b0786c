"""How tenants pay and how they stand, and what leases of those who pay beforehand have set aside of their money.

What a wallet has taken is the sum of its parts: PostgreSQL adds it up as parts change, as it does for budgets. Amounts
that end in `_num` are exact, over money.EXACT_PER_UNIT, and with tax. What is on a final invoice is no part any longer.
"""

from django.db import models
from django.db.models import F, Q

from billing.models.budgets import Hold
from billing.models.periods import BillingPeriod
from tenants.models.tenants import TenantOwned


class PaymentTerms(models.TextChoices):
    INVOICE = "invoice"  # each month is paid when it is over
    PREPAID = "prepaid"  # a lease runs on money and credit that is there


class TenantStanding(models.TextChoices):
    GOOD = "good"
    GRACE = "grace"  # something is overdue: everything goes on, and the pages say so
    SUSPENDED = "suspended"  # what runs goes on, nothing new begins


class TenantTerms(TenantOwned):
    """How a tenant pays and how it stands; who has no row pays by invoice and stands well."""

    id = models.BigAutoField(primary_key=True)
    payment = models.CharField(max_length=8, choices=PaymentTerms, default=PaymentTerms.INVOICE)
    standing = models.CharField(max_length=9, choices=TenantStanding, default=TenantStanding.GOOD)
    why = models.CharField(max_length=200, blank=True, default="")  # for the tenant's people
    since = models.DateTimeField()
    version = models.PositiveIntegerField(default=1)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant"], name="terms_once_a_tenant"),
            models.CheckConstraint(condition=Q(payment__in=PaymentTerms.values), name="terms_payment_known"),
            models.CheckConstraint(
                condition=Q(standing__in=TenantStanding.values), name="terms_standing_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tenant_id}: {self.payment}, {self.standing}"


class Wallet(TenantOwned):
    """What of a tenant's money is spoken for: whoever takes of it locks this row."""

    id = models.BigAutoField(primary_key=True)
    currency = models.CharField(max_length=3)
    taken_num = models.DecimalField(max_digits=38, decimal_places=0, default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant"], name="wallet_once_a_tenant"),
            models.CheckConstraint(condition=Q(taken_num__gte=0), name="wallet_adds_up"),
        ]

    def __str__(self) -> str:
        return f"wallet of {self.tenant_id}"


class WalletPart(TenantOwned):
    """What a lease has set aside for the invoice of one month, charged or yet to be charged.

    One that is of no hold is what was used before its tenant paid beforehand.
    """

    id = models.BigAutoField(primary_key=True)
    hold = models.ForeignKey(Hold, on_delete=models.PROTECT, related_name="wallet_parts", null=True)
    wallet = models.ForeignKey(Wallet, on_delete=models.PROTECT, related_name="parts")
    period = models.ForeignKey(BillingPeriod, on_delete=models.PROTECT, related_name="+")
    num = models.DecimalField(max_digits=38, decimal_places=0)
    spent_num = models.DecimalField(max_digits=38, decimal_places=0, default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "hold", "period"], name="wallet_part_once", nulls_distinct=False
            ),
            models.CheckConstraint(
                condition=Q(spent_num__gte=0, num__gte=F("spent_num")), name="wallet_part_covers"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.hold_id} {self.period_id}"
