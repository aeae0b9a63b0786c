"""Our books of what was asked of Stripe, of what it said, and of the cards that it keeps for tenants.

No card number is ever here: a card is Stripe's own name for it, its brand, its last four digits and when it ends.
"""

from django.db import models
from django.db.models import Q

from billing.domain.stripe_compare import SAYS, Kind
from billing.models.keys import ID_LENGTH, card_form_id
from billing.models.payments import Payment
from tenants.models.tenants import TenantOwned

STRIPE_ID = 120


class StripeCustomer(TenantOwned):
    """Who a tenant is at Stripe, and the card that is charged when nobody is there to type one."""

    customer_id = models.CharField(max_length=STRIPE_ID, blank=True, default="")
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


class CardFormState(models.TextChoices):
    WANTED = "wanted"  # a worker is to have Stripe open it
    OPEN = "open"  # its address is known; a person types a card into it, at Stripe
    SAVED = "saved"
    FAILED = "failed"


class CardForm(TenantOwned):
    """A form of Stripe's that somebody asked for, to save a card in. The row is the queue."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=card_form_id)
    state = models.CharField(max_length=6, choices=CardFormState, default=CardFormState.WANTED)
    asked_at = models.DateTimeField()
    asked_by = models.CharField(max_length=200)
    session_id = models.CharField(max_length=STRIPE_ID, blank=True, default="")
    url = models.TextField(blank=True, default="")
    reason = models.CharField(max_length=200, blank=True, default="")
    settled_at = models.DateTimeField(null=True)
    due_at = models.DateTimeField(null=True)
    tries = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(state__in=CardFormState.values), name="card_form_state_known")
        ]
        indexes = [
            models.Index(fields=["due_at"], name="card_form_waits", condition=Q(due_at__isnull=False)),
            models.Index(fields=["session_id"], name="card_form_by_session"),
        ]

    def __str__(self) -> str:
        return f"{self.id} ({self.state})"


class EventState(models.TextChoices):
    WAITING = "waiting"
    DONE = "done"
    PARKED = "parked"  # for people


class StripeEvent(models.Model):
    """What Stripe says happened there: which object to look at, and no more. The row is the queue."""

    id = models.CharField(primary_key=True, max_length=STRIPE_ID)
    type = models.CharField(max_length=80)
    api_version = models.CharField(max_length=40)
    object_id = models.CharField(max_length=STRIPE_ID)
    created = models.DateTimeField()
    received_at = models.DateTimeField()
    found = models.BooleanField(default=False)  # in Stripe's list, for it never reached us
    state = models.CharField(max_length=7, choices=EventState, default=EventState.WAITING)
    why = models.CharField(max_length=200, blank=True, default="")
    due_at = models.DateTimeField(null=True)
    tries = models.PositiveIntegerField(default=0)
    silences = models.PositiveIntegerField(
        default=0, db_default=0
    )  # of these, how many Stripe did not answer

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(state="waiting", due_at__isnull=False) | Q(~Q(state="waiting"), due_at=None),
                name="stripe_event_waits_or_not",
            )
        ]
        indexes = [
            models.Index(fields=["due_at"], name="stripe_event_waits", condition=Q(state="waiting")),
            models.Index(fields=["received_at"], name="stripe_event_parked", condition=Q(state="parked")),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.id}"


class PaymentDispute(TenantOwned):
    """What a cardholder told their bank about a payment: a mark beside its state, which it does not change."""

    id = models.CharField(primary_key=True, max_length=STRIPE_ID)
    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, related_name="disputes")
    status = models.CharField(max_length=40)
    rank = models.PositiveIntegerField()  # how far it has come; it never goes back
    minor = models.BigIntegerField()
    reason = models.CharField(max_length=80, blank=True, default="")
    opened_at = models.DateTimeField()
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.id} ({self.status})"


class PaymentRefund(TenantOwned):
    """Money of a payment that went back to where it came from."""

    id = models.CharField(primary_key=True, max_length=STRIPE_ID)
    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, related_name="refunds")
    status = models.CharField(max_length=40)
    rank = models.PositiveIntegerField()
    minor = models.BigIntegerField()
    made_at = models.DateTimeField()
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.id} ({self.status})"


class DayPhase(models.TextChoices):
    """What of a day is compared next."""

    EVENTS = "events"  # what never reached us
    THEIRS = "theirs"  # each invoice there
    OURS = "ours"  # each charge here whose invoice was not among them


class StripeDay(models.Model):
    """A day whose invoices at Stripe were compared with our books and with the ledger. The row is the queue.

    However many there are, they are compared a page at a time, and the row says how far that has come.
    """

    day = models.DateField(unique=True)
    due_at = models.DateTimeField(null=True)
    checked_at = models.DateTimeField(null=True)
    charges = models.PositiveIntegerField(default=0)  # ours
    invoices = models.PositiveIntegerField(default=0)  # theirs, of ours
    events = models.PositiveIntegerField(default=0)  # that never reached us
    differences = models.PositiveIntegerField(default=0)
    trouble = models.CharField(max_length=200, blank=True, default="")
    begun_at = models.DateTimeField(null=True)
    phase = models.CharField(
        max_length=6, choices=DayPhase, default=DayPhase.EVENTS, db_default=DayPhase.EVENTS
    )
    after = models.CharField(max_length=STRIPE_ID, blank=True, default="", db_default="")  # the last one seen

    class Meta:
        indexes = [models.Index(fields=["due_at"], name="stripe_day_waits")]

    def __str__(self) -> str:
        return f"{self.day:%Y-%m-%d}"


class StripeSeen(models.Model):
    """A charge that was compared while its day is: kept until the day is done."""

    id = models.BigAutoField(primary_key=True)
    day = models.ForeignKey(StripeDay, on_delete=models.CASCADE, related_name="seen")
    charge = models.CharField(max_length=60)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["day", "charge"], name="stripe_seen_once")]

    def __str__(self) -> str:
        return self.charge


class StripeDifference(models.Model):
    """Where the three books differed when they were last compared; it stays until they agree.

    A person may acknowledge it, with a reason; it waits for nobody then, until it is another amount.
    """

    id = models.BigAutoField(primary_key=True)
    day = models.ForeignKey(StripeDay, on_delete=models.PROTECT, related_name="found")
    kind = models.CharField(max_length=30)
    ref = models.CharField(max_length=STRIPE_ID)
    currency = models.CharField(max_length=3, blank=True, default="")
    ours = models.BigIntegerField(null=True)  # minor units
    theirs = models.BigIntegerField(null=True)  # as Stripe counts
    booked = models.BigIntegerField(null=True)  # minor units
    back = models.BigIntegerField(null=True)  # minor units that went back
    found_at = models.DateTimeField()
    seen_at = models.DateTimeField()
    acknowledged_at = models.DateTimeField(null=True)
    acknowledged_by = models.CharField(max_length=200, blank=True, default="", db_default="")
    why = models.CharField(max_length=200, blank=True, default="", db_default="")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["day", "kind", "ref"], name="stripe_difference_once")]

    def __str__(self) -> str:
        return f"{self.kind} {self.ref}"

    @property
    def amounts(self) -> tuple[int | None, ...]:
        """What it was acknowledged as; whatever differs from that is another difference."""
        return self.ours, self.theirs, self.booked, self.back

    @property
    def title(self) -> str:
        """Its kind as people read it."""
        return self.kind.replace("_", " ").capitalize()

    @property
    def says(self) -> str:
        """What it means, for people."""
        return SAYS[Kind(self.kind)][0]

    @property
    def next(self) -> str:
        """What to do about it."""
        return SAYS[Kind(self.kind)][1]
