"""Credit notes of final invoices, and payments of invoices from the balance. Append-only.

Final invoices never change. PostgreSQL refuses (triggers_credit_notes.sql) to credit more of a line than it
charged, in whatever order and however concurrently, and a note that is not the sum of its lines.
"""

from django.db import models
from django.db.models import F, Q

from billing.models.default_ids import ID_LENGTH, credit_note_id, payment_draw_id
from billing.models.invoices import Invoice, InvoiceLine
from tenants.models.tenants import TenantOwned

MAX_REASON_LENGTH = 200


class CreditNote(TenantOwned):
    """A numbered document that lowers what is owed for an invoice, with a reason."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=credit_note_id)
    invoice = models.ForeignKey(Invoice, on_delete=models.PROTECT, related_name="credit_notes")
    series = models.CharField(max_length=20)
    number = models.PositiveIntegerField()
    currency = models.CharField(max_length=3)
    total = models.BigIntegerField()  # minor units: its lines and their tax
    tax = models.BigIntegerField(default=0, db_default=0)
    reduced_due = models.BigIntegerField()  # of it, what lowered the amount due; the rest went to the tenant's balance
    # Of the rest, what grants had paid: it goes back to them.
    to_grants = models.BigIntegerField(default=0, db_default=0)
    reason = models.CharField(max_length=MAX_REASON_LENGTH)
    correction_id = models.CharField(
        max_length=ID_LENGTH, blank=True, default="", db_default=""
    )  # the correction it belongs to
    issued_at = models.DateTimeField()
    issued_by = models.CharField(max_length=ID_LENGTH)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["series", "number"], name="credit_note_number_once"),
            models.UniqueConstraint(
                fields=["invoice", "correction_id"], condition=~Q(correction_id=""), name="correction_credited_once"
            ),
            models.CheckConstraint(
                condition=Q(total__gt=0, reduced_due__gte=0, reduced_due__lte=F("total")), name="credit_of_something"
            ),
            models.CheckConstraint(
                condition=Q(to_grants__gte=0, to_grants__lte=F("total") - F("reduced_due")),
                name="credit_to_grants_is_a_part",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.series}-{self.number:04d}"

    @property
    def to_balance(self) -> int:
        return self.total - self.reduced_due - self.to_grants


class CreditNoteLine(TenantOwned):
    """The amount that a credit note credits of one invoice line."""

    id = models.BigAutoField(primary_key=True)
    credit_note = models.ForeignKey(CreditNote, on_delete=models.PROTECT, related_name="lines")
    line = models.ForeignKey(InvoiceLine, on_delete=models.PROTECT, related_name="credits")
    minor = models.BigIntegerField()
    tax_minor = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["credit_note", "line"], name="line_credited_once_a_note"),
            models.CheckConstraint(condition=Q(minor__gt=0), name="credit_line_of_something"),
        ]

    def __str__(self) -> str:
        return f"{self.credit_note_id} {self.line_id}"


class BalanceDraw(TenantOwned):
    """The part of an invoice that was paid from the tenant's balance at finalization."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=payment_draw_id)
    invoice = models.OneToOneField(Invoice, on_delete=models.PROTECT, related_name="draw")
    minor = models.BigIntegerField()
    at = models.DateTimeField()

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(minor__gt=0), name="draw_of_something")]

    def __str__(self) -> str:
        return self.pk
