"""Our books of what was asked of Stripe, of what it said, and of the cards that it keeps for tenants.

No card number is ever here: a card is Stripe's own name for it, its brand, its last four digits and when it ends.
"""

from django.db import models
from django.db.models import Q

from billing.models.keys import ID_LENGTH
from tenants.models.tenants import TenantOwned

STRIPE_ID = 120


class StripeCustomer(TenantOwned):
    """Who a tenant is at Stripe, and the card that is charged when nobody is there to type one."""

    customer_id = models.CharField(max_length=STRIPE_ID, blank=True, default="")
    session_id = models.CharField(max_length=STRIPE_ID, blank=True, default="")  # the latest form for a card
    card_id = models.CharField(max_length=STRIPE_ID, blank=True, default="")
    brand = models.CharField(max_length=30, blank=True, default="")
    last4 = models.CharField(max_length=4, blank=True, default="")
    ends = models.CharField(max_length=7, blank=True, default="")  # 2029-07
    added_at = models.DateTimeField(null=True)
    added_by = models.CharField(max_length=200, blank=True, default="")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant"], name="stripe_customer_once")]
        indexes = [models.Index(fields=["customer_id"], name="stripe_customer_by_id")]

    def __str__(self) -> str:
        return self.customer_id or "no customer yet"


class StripeOutcome(models.TextChoices):
    OPEN = "open"
    SUCCEEDED = "succeeded"
    DECLINED = "declined"


class StripeCharge(TenantOwned):
    """One charge, under the id of its payment, and the invoice at Stripe that stands for it."""

    id = models.CharField(primary_key=True, max_length=60)
    minor = models.BigIntegerField()
    currency = models.CharField(max_length=3)
    sent_minor = models.BigIntegerField()  # the same as Stripe counts it
    customer_id = models.CharField(max_length=STRIPE_ID, blank=True, default="")
    card_id = models.CharField(max_length=STRIPE_ID, blank=True, default="")
    card = models.CharField(max_length=60, blank=True, default="")  # as people call it
    stripe_id = models.CharField(max_length=STRIPE_ID, blank=True, default="")  # the latest invoice of it
    round = models.PositiveIntegerField(default=0)  # how many invoices at Stripe were given up before
    outcome = models.CharField(max_length=9, choices=StripeOutcome, default=StripeOutcome.OPEN)
    code = models.CharField(max_length=60, blank=True, default="")
    reason = models.CharField(max_length=200, blank=True, default="")
    made_at = models.DateTimeField()
    settled_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(outcome__in=StripeOutcome.values), name="stripe_outcome_known"
            ),
            models.CheckConstraint(
                condition=Q(outcome="open", settled_at=None) | (~Q(outcome="open") & ~Q(settled_at=None)),
                name="stripe_charge_open_or_settled",
            ),
        ]
        indexes = [
            models.Index(fields=["stripe_id"], name="stripe_charge_by_id"),
            models.Index(fields=["made_at"], name="stripe_charge_by_age"),
        ]

    def __str__(self) -> str:
        return f"{self.id} ({self.outcome})"


class CommandState(models.TextChoices):
    NEW = "new"  # not sent, or sent and not answered: the same key may be sent again
    UNCLEAR = "unclear"  # Stripe failed over it, and would say so for a day under the same key
    DONE = "done"


class StripeCommand(TenantOwned):
    """One write at Stripe: its parameters are frozen, and its key stored, before it is sent for the first time."""

    id = models.BigAutoField(primary_key=True)
    subject = models.CharField(max_length=60)  # a payment's id, or a tenant's
    step = models.CharField(max_length=20)
    round = models.PositiveIntegerField(default=0)
    attempt = models.PositiveIntegerField(default=0)  # how many keys were given up before this one
    params = models.TextField()  # as text: a repetition has to be the same byte for byte
    idem = models.CharField(max_length=64, unique=True)
    state = models.CharField(max_length=7, choices=CommandState, default=CommandState.NEW)
    sent = models.PositiveIntegerField(default=0)
    sent_at = models.DateTimeField(null=True)  # first, under this key
    answer = models.TextField(blank=True, default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "subject", "step", "round"], name="stripe_command_once"
            ),
            models.CheckConstraint(
                condition=Q(state__in=CommandState.values), name="stripe_command_state_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.step} of {self.subject[:ID_LENGTH]}"


class StripePace(models.Model):
    """When the next call to Stripe would not be one too many: a single row."""

    idle_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"idle at {self.idle_at}"
