"""Records of requests to Stripe, of its answers, and of the tenants' payment cards.

Card numbers are never stored: a card is Stripe's id, its brand, last four digits and expiry.
"""

from django.db import models
from django.db.models import Q

from billing.domain.stripe_reconciliation import DIFFERENCE_TEXTS, DifferenceKind
from billing.models.default_ids import ID_LENGTH, payment_card_form_id
from billing.models.payments import Payment
from tenants.models.tenants import TenantOwned

MAX_STRIPE_ID_LENGTH = 120


class StripeCustomer(TenantOwned):
    """A tenant's customer id at Stripe and the saved card for automatic payments."""

    customer_id = models.CharField(max_length=MAX_STRIPE_ID_LENGTH, blank=True, default="")
    card_id = models.CharField(max_length=MAX_STRIPE_ID_LENGTH, blank=True, default="")
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
    """A charge under its payment's id, and the Stripe invoice that collects it."""

    id = models.CharField(primary_key=True, max_length=60)
    minor = models.BigIntegerField()
    currency = models.CharField(max_length=3)
    sent_minor = models.BigIntegerField()  # the same in Stripe's integers
    customer_id = models.CharField(max_length=MAX_STRIPE_ID_LENGTH, blank=True, default="")
    card_id = models.CharField(max_length=MAX_STRIPE_ID_LENGTH, blank=True, default="")
    card = models.CharField(max_length=60, blank=True, default="")  # brand and last digits, for people
    stripe_id = models.CharField(max_length=MAX_STRIPE_ID_LENGTH, blank=True, default="")  # its latest invoice
    round = models.PositiveIntegerField(default=0)  # number of abandoned invoices at Stripe before this one
    outcome = models.CharField(max_length=9, choices=StripeOutcome, default=StripeOutcome.OPEN)
    code = models.CharField(max_length=60, blank=True, default="")
    reason = models.CharField(max_length=200, blank=True, default="")
    made_at = models.DateTimeField()
    settled_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(outcome__in=StripeOutcome.values), name="stripe_outcome_known"),
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


class StripeCommandState(models.TextChoices):
    NEW = "new"  # not sent or not answered: may be sent again with the same key
    UNKNOWN_OUTCOME = "unknown_outcome"  # a server error, which Stripe repeats for a day under the same key
    DONE = "done"


class StripeCommand(TenantOwned):
    """A write request to Stripe; parameters and key are stored before it is first sent."""

    id = models.BigAutoField(primary_key=True)
    subject = models.CharField(max_length=60)  # a payment's or tenant's id
    step = models.CharField(max_length=20)
    round = models.PositiveIntegerField(default=0)
    attempt = models.PositiveIntegerField(default=0)  # number of abandoned keys before this one
    params = models.TextField()  # as text: a retry must be identical byte for byte
    idem = models.CharField(max_length=64, unique=True)
    state = models.CharField(max_length=15, choices=StripeCommandState, default=StripeCommandState.NEW)
    sent = models.PositiveIntegerField(default=0)
    sent_at = models.DateTimeField(null=True)  # first, under this key
    answer = models.TextField(blank=True, default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "subject", "step", "round"], name="stripe_command_once"),
            models.CheckConstraint(condition=Q(state__in=StripeCommandState.values), name="stripe_command_state_known"),
        ]

    def __str__(self) -> str:
        return f"{self.step} of {self.subject[:ID_LENGTH]}"


class StripeRateLimit(models.Model):
    """The rate limiter of calls to Stripe: a single row."""

    idle_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"idle at {self.idle_at}"


class PaymentCardFormState(models.TextChoices):
    WANTED = "wanted"  # a worker has to create it at Stripe
    OPEN = "open"  # its URL is known; a person enters a card there, at Stripe
    SAVED = "saved"
    FAILED = "failed"


class PaymentCardForm(TenantOwned):
    """A requested Stripe form to save a card. The row is the queue."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=payment_card_form_id)
    state = models.CharField(max_length=6, choices=PaymentCardFormState, default=PaymentCardFormState.WANTED)
    asked_at = models.DateTimeField()
    asked_by = models.CharField(max_length=200)
    session_id = models.CharField(max_length=MAX_STRIPE_ID_LENGTH, blank=True, default="")
    url = models.TextField(blank=True, default="")
    reason = models.CharField(max_length=200, blank=True, default="")
    settled_at = models.DateTimeField(null=True)
    due_at = models.DateTimeField(null=True)
    attempts = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(state__in=PaymentCardFormState.values), name="card_form_state_known")
        ]
        indexes = [
            models.Index(fields=["due_at"], name="card_form_waits", condition=Q(due_at__isnull=False)),
            models.Index(fields=["session_id"], name="card_form_by_session"),
        ]

    def __str__(self) -> str:
        return f"{self.id} ({self.state})"


class StripeEventState(models.TextChoices):
    WAITING = "waiting"
    DONE = "done"
    PARKED = "parked"  # a person has to look at it


class StripeEvent(models.Model):
    """A webhook event, reduced to the object to look up. The row is the queue."""

    id = models.CharField(primary_key=True, max_length=MAX_STRIPE_ID_LENGTH)
    type = models.CharField(max_length=80)
    api_version = models.CharField(max_length=40)
    object_id = models.CharField(max_length=MAX_STRIPE_ID_LENGTH)
    created = models.DateTimeField()
    received_at = models.DateTimeField()
    found = models.BooleanField(default=False)  # read from Stripe's list because no webhook arrived
    state = models.CharField(max_length=7, choices=StripeEventState, default=StripeEventState.WAITING)
    why = models.CharField(max_length=200, blank=True, default="")
    due_at = models.DateTimeField(null=True)
    attempts = models.PositiveIntegerField(default=0)
    # Of these, the attempts that Stripe did not answer.
    unanswered_attempts = models.PositiveIntegerField(default=0, db_default=0)

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
    """A cardholder's dispute of a payment with the bank; the payment's status stays the same."""

    id = models.CharField(primary_key=True, max_length=MAX_STRIPE_ID_LENGTH)
    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, related_name="disputes")
    status = models.CharField(max_length=40)
    rank = models.PositiveIntegerField()  # progress of the status; it only increases
    minor = models.BigIntegerField()
    reason = models.CharField(max_length=80, blank=True, default="")
    opened_at = models.DateTimeField()
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.id} ({self.status})"


class PaymentRefund(TenantOwned):
    """A refund of a payment as Stripe reports it."""

    id = models.CharField(primary_key=True, max_length=MAX_STRIPE_ID_LENGTH)
    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, related_name="refunds")
    status = models.CharField(max_length=40)
    rank = models.PositiveIntegerField()
    minor = models.BigIntegerField()
    made_at = models.DateTimeField()
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.id} ({self.status})"


class ReconciliationPhase(models.TextChoices):
    """What a day's reconciliation compares next."""

    EVENTS = "events"  # events whose webhook never arrived
    THEIRS = "theirs"  # each invoice at Stripe
    OURS = "ours"  # each of our charges whose invoice was not among them


class StripeReconciliationDay(models.Model):
    """The reconciliation of one day: Stripe's invoices, our charges and the ledger.

    The row is the queue. Pages are compared one at a time, and the row stores the position.
    """

    day = models.DateField(unique=True)
    due_at = models.DateTimeField(null=True)
    checked_at = models.DateTimeField(null=True)
    charges = models.PositiveIntegerField(default=0)  # ours
    invoices = models.PositiveIntegerField(default=0)  # Stripe's, for our charges
    events = models.PositiveIntegerField(default=0)  # whose webhook never arrived
    differences = models.PositiveIntegerField(default=0)
    last_error = models.CharField(max_length=200, blank=True, default="")
    begun_at = models.DateTimeField(null=True)
    phase = models.CharField(
        max_length=6,
        choices=ReconciliationPhase,
        default=ReconciliationPhase.EVENTS,
        db_default=ReconciliationPhase.EVENTS,
    )
    after = models.CharField(max_length=MAX_STRIPE_ID_LENGTH, blank=True, default="", db_default="")  # cursor

    class Meta:
        indexes = [models.Index(fields=["due_at"], name="stripe_day_waits")]

    def __str__(self) -> str:
        return f"{self.day:%Y-%m-%d}"


class ReconciledCharge(models.Model):
    """A charge already compared for a day; kept until the day is done."""

    id = models.BigAutoField(primary_key=True)
    day = models.ForeignKey(StripeReconciliationDay, on_delete=models.CASCADE, related_name="seen")
    charge = models.CharField(max_length=60)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["day", "charge"], name="stripe_seen_once")]

    def __str__(self) -> str:
        return self.charge


class StripeDifference(models.Model):
    """A difference between the three records; it stays until they agree.

    A person may acknowledge it with a reason. It then needs nobody, until its amounts change.
    """

    id = models.BigAutoField(primary_key=True)
    day = models.ForeignKey(StripeReconciliationDay, on_delete=models.PROTECT, related_name="found")
    kind = models.CharField(max_length=30)
    ref = models.CharField(max_length=MAX_STRIPE_ID_LENGTH)
    currency = models.CharField(max_length=3, blank=True, default="")
    ours = models.BigIntegerField(null=True)  # minor units
    theirs = models.BigIntegerField(null=True)  # in Stripe's integers
    booked = models.BigIntegerField(null=True)  # minor units
    back = models.BigIntegerField(null=True)  # returned, in minor units
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
        """The amounts that an acknowledgement covers; a change makes it a new difference."""
        return self.ours, self.theirs, self.booked, self.back

    @property
    def title(self) -> str:
        """The kind as people read it."""
        return self.kind.replace("_", " ").capitalize()

    @property
    def description(self) -> str:
        """The meaning, for people."""
        return DIFFERENCE_TEXTS[DifferenceKind(self.kind)][0]

    @property
    def next(self) -> str:
        """What to do about it, for people."""
        return DIFFERENCE_TEXTS[DifferenceKind(self.kind)][1]
