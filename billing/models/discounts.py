"""Discounts of tenants, and the campaigns whose codes give them."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from billing.models.keys import ID_LENGTH, campaign_id, discount_id
from tenants.models.tenants import TenantOwned

LONGEST_NAME = 80


class Terms(models.Model):
    """So many hundredths of a per cent off, or so much money off every month; of all that is sold, or of some."""

    name = models.CharField(max_length=LONGEST_NAME)  # as invoices say it
    percent_bp = models.PositiveIntegerField(null=True)
    minor = models.BigIntegerField(null=True)
    currency = models.CharField(max_length=3, blank=True, default="")  # of an amount
    offerings = ArrayField(models.CharField(max_length=ID_LENGTH), default=list)  # none: all
    price_classes = ArrayField(models.CharField(max_length=12), default=list)  # none: all

    class Meta:
        abstract = True


SOMETHING = Q(percent_bp__gt=0, percent_bp__lte=10_000, minor__isnull=True) | Q(
    percent_bp__isnull=True, minor__gt=0
)


class Campaign(Terms):
    """A code that tenants may redeem for a discount, each once and so many in all."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=campaign_id)
    code = models.CharField(max_length=40, unique=True)  # in capitals
    since = models.DateTimeField()
    until = models.DateTimeField(null=True)
    months = models.PositiveSmallIntegerField(
        null=True
    )  # that it lasts, the one of redeeming included; None: for good
    most = models.PositiveIntegerField(null=True)  # who may redeem it in all
    redeemed = models.PositiveIntegerField(default=0)
    created_by = models.CharField(max_length=254)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(until__isnull=True) | Q(until__gt=F("since")), name="campaign_lasts"
            ),
            models.CheckConstraint(
                condition=Q(months__isnull=True) | Q(months__gt=0), name="campaign_of_months"
            ),
            models.CheckConstraint(
                condition=Q(most__isnull=True) | Q(redeemed__lte=F("most")), name="campaign_not_used_up_twice"
            ),
            models.CheckConstraint(
                condition=SOMETHING,
                name="campaign_of_something",
            ),
        ]

    def __str__(self) -> str:
        return self.code


class Discount(TenantOwned, Terms):
    """What a tenant pays less, in whole months; agreed on, or of a code that it redeemed."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=discount_id)
    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="discounts", null=True)
    first_month = models.CharField(max_length=7)  # 2026-11
    last_month = models.CharField(max_length=7, null=True)  # None: for good
    given_by = models.CharField(max_length=254)
    given_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "campaign"], name="campaign_redeemed_once"),
            models.CheckConstraint(
                condition=SOMETHING,
                name="discount_of_something",
            ),
        ]

    def __str__(self) -> str:
        return self.id

    def holds_in(self, month: str) -> bool:
        """Tell whether it is of that month."""
        return self.first_month <= month and (self.last_month is None or month <= self.last_month)

    def is_of(self, offering: str, price_class: str) -> bool:
        """Tell whether what is sold so is cheaper by it."""
        return (not self.offerings or offering in self.offerings) and (
            not self.price_classes or price_class in self.price_classes
        )
