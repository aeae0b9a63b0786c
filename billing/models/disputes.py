"""Disputes of invoice lines by tenants, and how they were answered."""

from django.db import models
from django.db.models import Q

from billing.models.credit_notes import CreditNote
from billing.models.default_ids import ID_LENGTH, dispute_id
from billing.models.invoices import Invoice, InvoiceLine
from tenants.models.tenants import TenantOwned

MAX_REASON_LENGTH = 500


class DisputeStatus(models.TextChoices):
    OPEN = "open"
    ACCEPTED = "accepted"  # in full or in part, by a credit note
    DECLINED = "declined"
    WITHDRAWN = "withdrawn"


class Dispute(TenantOwned):
    """A disputed amount of one line; it is closed once and then never changes."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=dispute_id)
    invoice = models.ForeignKey(Invoice, on_delete=models.PROTECT, related_name="disputes")
    line = models.ForeignKey(InvoiceLine, on_delete=models.PROTECT, related_name="disputes")
    minor = models.BigIntegerField()  # of the line, before tax
    tax_minor = models.BigIntegerField(default=0)  # that would be credited with it
    currency = models.CharField(max_length=3)
    reason = models.CharField(max_length=MAX_REASON_LENGTH)
    status = models.CharField(max_length=9, choices=DisputeStatus, default=DisputeStatus.OPEN)
    opened_at = models.DateTimeField()
    opened_by = models.CharField(max_length=254)
    closed_at = models.DateTimeField(null=True)
    answer = models.CharField(max_length=MAX_REASON_LENGTH, blank=True, default="")  # shown to the tenant
    # One note may credit several disputed lines.
    credit_note = models.ForeignKey(CreditNote, on_delete=models.PROTECT, null=True, related_name="disputes")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["line"], condition=Q(status="open"), name="one_open_dispute_of_a_line"),
            models.CheckConstraint(condition=Q(minor__gt=0, tax_minor__gte=0), name="dispute_of_something"),
            models.CheckConstraint(
                condition=Q(status="open", closed_at__isnull=True)
                | Q(status__in=["accepted", "declined", "withdrawn"], closed_at__isnull=False),
                name="dispute_ends_at_a_moment",
            ),
            models.CheckConstraint(
                condition=Q(status="accepted", credit_note__isnull=False)
                | (~Q(status="accepted") & Q(credit_note__isnull=True)),
                name="accepted_is_given_back",
            ),
            models.CheckConstraint(condition=~Q(status="declined") | ~Q(answer=""), name="declined_for_a_reason"),
        ]

    def __str__(self) -> str:
        return self.pk

    @property
    def total(self) -> int:
        """The disputed amount with its tax, in minor units."""
        return self.minor + self.tax_minor


class DisputeStep(TenantOwned):
    """An event of a dispute and who caused it. Append-only."""

    id = models.BigAutoField(primary_key=True)
    dispute = models.ForeignKey(Dispute, on_delete=models.PROTECT, related_name="steps")
    n = models.PositiveSmallIntegerField()  # 0 opens it, 1 closes it
    status = models.CharField(max_length=9, choices=DisputeStatus)
    minor = models.BigIntegerField()  # of the line: disputed or credited
    words = models.CharField(max_length=MAX_REASON_LENGTH, blank=True, default="")
    by = models.CharField(max_length=254)
    at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "dispute", "n"], name="dispute_step_once"),
            models.CheckConstraint(
                condition=Q(n=0, status="open") | (Q(n=1) & ~Q(status="open")), name="dispute_has_two_steps"
            ),
            models.CheckConstraint(condition=Q(status__in=DisputeStatus.values), name="dispute_step_known"),
        ]

    def __str__(self) -> str:
        return f"{self.dispute_id} {self.status}"
