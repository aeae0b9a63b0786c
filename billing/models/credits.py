"""What was given back of final invoices, and what of it went towards later ones. Append-only: invoices never change.

What PostgreSQL refuses stands in migration 0014: giving back more of a line than it came to, in whichever order and
however many do so at once, and a note that is not the sum of its lines.
"""

from django.db import models
from django.db.models import F, Q

from billing.models.invoices import Invoice, InvoiceLine
from billing.models.keys import ID_LENGTH, credit_note_id, draw_id
from tenants.models.tenants import TenantOwned

LONGEST_REASON = 200


class CreditNote(TenantOwned):
    """A document with a number of its own: so much of an invoice is not owed after all, for a reason."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=credit_note_id)
    invoice = models.ForeignKey(Invoice, on_delete=models.PROTECT, related_name="credit_notes")
    series = models.CharField(max_length=20)
    number = models.PositiveIntegerField()
    currency = models.CharField(max_length=3)
    total = models.BigIntegerField()  # minor units, the sum of its lines and of the tax on them
    tax = models.BigIntegerField(default=0, db_default=0)
    off_due = (
        models.BigIntegerField()
    )  # of it, what was still to be paid; the rest went to the tenant's balance
    # Of the rest, what no money was paid for: it goes back to the grants that paid for it.
    to_grants = models.BigIntegerField(default=0, db_default=0)
    reason = models.CharField(max_length=LONGEST_REASON)
    correction_id = models.CharField(
        max_length=ID_LENGTH, blank=True, default="", db_default=""
    )  # that it books
    issued_at = models.DateTimeField()
    issued_by = models.CharField(max_length=ID_LENGTH)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["series", "number"], name="credit_note_number_once"),
            models.UniqueConstraint(
                fields=["invoice", "correction_id"],
                condition=~Q(correction_id=""),
                name="correction_credited_once",
            ),
            models.CheckConstraint(
                condition=Q(total__gt=0, off_due__gte=0, off_due__lte=F("total")), name="credit_of_something"
            ),
            models.CheckConstraint(
                condition=Q(to_grants__gte=0, to_grants__lte=F("total") - F("off_due")),
                name="credit_to_grants_is_a_part",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.series}-{self.number:04d}"

    @property
    def to_balance(self) -> int:
        return self.total - self.off_due - self.to_grants


class CreditNoteLine(TenantOwned):
    """How much a note gives back of one line of its invoice."""

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
    """What of an invoice was settled from its tenant's balance, when it became final."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=draw_id)
    invoice = models.OneToOneField(Invoice, on_delete=models.PROTECT, related_name="draw")
    minor = models.BigIntegerField()
    at = models.DateTimeField()

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(minor__gt=0), name="draw_of_something")]

    def __str__(self) -> str:
        return self.pk
