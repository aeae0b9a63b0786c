"""Spend caps of API tokens, per day and in total, and their use by leases.

Days are in the tenant's time zone. What is used of a day is the sum of its parts, which PostgreSQL adds
up. Amounts that end in `_num` are exact, over money.EXACT_PER_UNIT.
"""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from billing.models.default_ids import ID_LENGTH
from broker.models import Lease
from tenants.models import ApiToken
from tenants.models.tenants import TenantOwned


class TokenCap(TenantOwned):
    """The spend cap of a token, set when the token is created and never changed."""

    token = models.OneToOneField(ApiToken, on_delete=models.CASCADE, primary_key=True, related_name="+")
    currency = models.CharField(max_length=3)
    daily_minor = models.BigIntegerField(null=True)
    total_minor = models.BigIntegerField(null=True)
    offerings = ArrayField(models.CharField(max_length=ID_LENGTH), default=list)  # none: any
    set_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=(Q(daily_minor__isnull=True) | Q(daily_minor__gte=0))
                & (Q(total_minor__isnull=True) | Q(total_minor__gte=0)),
                name="token_cap_not_negative",
            )
        ]

    def __str__(self) -> str:
        return str(self.token_id)


class TokenCapDay(TenantOwned):
    id = models.BigAutoField(primary_key=True)
    cap = models.ForeignKey(TokenCap, on_delete=models.CASCADE, related_name="days")
    day = models.DateField()
    taken_num = models.DecimalField(max_digits=38, decimal_places=0, default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "cap", "day"], name="token_day_once"),
            models.CheckConstraint(condition=Q(taken_num__gte=0), name="token_day_not_negative"),
        ]

    def __str__(self) -> str:
        return f"{self.cap_id} {self.day}"


class TokenCapLease(TenantOwned):
    """A lease requested with a capped token; all its cost counts towards the cap."""

    id = models.BigAutoField(primary_key=True)
    cap = models.ForeignKey(TokenCap, on_delete=models.CASCADE, related_name="leases")
    lease = models.OneToOneField(Lease, on_delete=models.PROTECT, related_name="+")

    def __str__(self) -> str:
        return f"{self.lease_id} of {self.cap_id}"


class TokenCapPart(TenantOwned):
    """What a lease uses of one day of its token's cap."""

    id = models.BigAutoField(primary_key=True)
    of = models.ForeignKey(TokenCapLease, on_delete=models.CASCADE, related_name="parts")
    day = models.ForeignKey(TokenCapDay, on_delete=models.CASCADE, related_name="parts")
    num = models.DecimalField(max_digits=38, decimal_places=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "of", "day"], name="token_part_once"),
            models.CheckConstraint(condition=Q(num__gte=0), name="token_part_not_negative"),
        ]

    def __str__(self) -> str:
        return f"{self.of_id} {self.day_id}"
