"""Discounts of tenants, and campaigns whose coupon codes give them."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from billing.models.default_ids import ID_LENGTH, campaign_id, discount_id
from tenants.models.tenants import TenantOwned

MAX_NAME_LENGTH = 80


class AbstractDiscountTerms(models.Model):
    """Terms of a discount: a percentage or a monthly amount, off all or some offerings."""

    name = models.CharField(max_length=MAX_NAME_LENGTH)  # as shown on invoices
    percent_bp = models.PositiveIntegerField(null=True)
    minor = models.BigIntegerField(null=True)
    currency = models.CharField(max_length=3, blank=True, default="")  # of an amount
    offerings = ArrayField(models.CharField(max_length=ID_LENGTH), default=list)  # none: all
    price_classes = ArrayField(models.CharField(max_length=12), default=list)  # none: all

    class Meta:
        abstract = True


PERCENT_OR_AMOUNT = Q(percent_bp__gt=0, percent_bp__lte=10_000, minor__isnull=True) | Q(
    percent_bp__isnull=True, minor__gt=0
)


class Campaign(AbstractDiscountTerms):
    """A coupon code that each tenant may redeem once, up to a total number."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=campaign_id)
    code = models.CharField(max_length=40, unique=True)  # in capitals
    since = models.DateTimeField()
    until = models.DateTimeField(null=True)
    months = models.PositiveSmallIntegerField(null=True)  # duration including the month of redeeming; None: unlimited
    most = models.PositiveIntegerField(null=True)  # total redemptions allowed
    redeemed = models.PositiveIntegerField(default=0)
    created_by = models.CharField(max_length=254)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(until__isnull=True) | Q(until__gt=F("since")), name="campaign_lasts"),
            models.CheckConstraint(condition=Q(months__isnull=True) | Q(months__gt=0), name="campaign_of_months"),
            models.CheckConstraint(
                condition=Q(most__isnull=True) | Q(redeemed__lte=F("most")), name="campaign_not_used_up_twice"
            ),
            models.CheckConstraint(condition=PERCENT_OR_AMOUNT, name="campaign_of_something"),
        ]

    def __str__(self) -> str:
        return self.code


class Discount(TenantOwned, AbstractDiscountTerms):
    """A discount of a tenant for whole months, agreed or from a redeemed code."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=discount_id)
    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="discounts", null=True)
    first_month = models.CharField(max_length=7)  # 2026-11
    last_month = models.CharField(max_length=7, null=True)  # None: unlimited
    given_by = models.CharField(max_length=254)
    given_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "campaign"], name="campaign_redeemed_once"),
            models.CheckConstraint(condition=PERCENT_OR_AMOUNT, name="discount_of_something"),
        ]

    def __str__(self) -> str:
        return self.id

    def holds_in(self, month: str) -> bool:
        """Return whether the discount applies in a month."""
        return self.first_month <= month and (self.last_month is None or month <= self.last_month)

    def applies_to(self, offering: str, price_class: str) -> bool:
        """Return whether the discount applies to an offering and price class."""
        return (not self.offerings or offering in self.offerings) and (
            not self.price_classes or price_class in self.price_classes
        )
