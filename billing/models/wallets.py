"""Payment terms and account status of tenants, and wallet holds of prepaid leases.

What is held of a wallet is the sum of its parts, which PostgreSQL adds up as parts change, as for
budgets. Amounts that end in `_num` are exact, over money.EXACT_PER_UNIT, with tax. What is on a final
invoice is no longer a part.
"""

from django.db import models
from django.db.models import F, Q

from billing.models.budgets import Hold
from billing.models.periods import BillingPeriod
from tenants.models.tenants import TenantOwned


class PaymentTerms(models.TextChoices):
    INVOICE = "invoice"  # each month is paid after its end
    PREPAID = "prepaid"  # leases run on money and credit in the wallet
    SHOWBACK = "showback", "Show-back"  # nothing is paid: each month has a report of its costs


class AccountStatus(models.TextChoices):
    GOOD = "good"
    GRACE = "grace"  # overdue: everything continues, and pages show a notice
    SUSPENDED = "suspended"  # running leases continue, no new ones


class AccountTerms(TenantOwned):
    """A tenant's payment terms and account status; without a row: by invoice, good."""

    id = models.BigAutoField(primary_key=True)
    payment = models.CharField(max_length=8, choices=PaymentTerms, default=PaymentTerms.INVOICE)
    account_status = models.CharField(max_length=9, choices=AccountStatus, default=AccountStatus.GOOD)
    why = models.CharField(max_length=200, blank=True, default="")  # shown to the tenant
    since = models.DateTimeField()
    version = models.PositiveIntegerField(default=1)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant"], name="terms_once_a_tenant"),
            models.CheckConstraint(condition=Q(payment__in=PaymentTerms.values), name="terms_payment_known"),
            models.CheckConstraint(
                condition=Q(account_status__in=AccountStatus.values), name="terms_account_status_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tenant_id}: {self.payment}, {self.account_status}"


class Wallet(TenantOwned):
    """The held amount of a tenant's money; the row is locked to change it."""

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
    """What a lease holds for one month's invoice, charged or not.

    A part without a hold is usage from before the tenant became prepaid.
    """

    id = models.BigAutoField(primary_key=True)
    hold = models.ForeignKey(Hold, on_delete=models.PROTECT, related_name="wallet_parts", null=True)
    wallet = models.ForeignKey(Wallet, on_delete=models.PROTECT, related_name="parts")
    period = models.ForeignKey(BillingPeriod, on_delete=models.PROTECT, related_name="+")
    num = models.DecimalField(max_digits=38, decimal_places=0)
    spent_num = models.DecimalField(max_digits=38, decimal_places=0, default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "hold", "period"], name="wallet_part_once", nulls_distinct=False),
            models.CheckConstraint(condition=Q(spent_num__gte=0, num__gte=F("spent_num")), name="wallet_part_covers"),
        ]

    def __str__(self) -> str:
        return f"{self.hold_id} {self.period_id}"
