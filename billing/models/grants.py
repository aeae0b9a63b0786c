"""Credit that was given, what it paid for, what came back to it, and what ended unused. Append-only.

What is left of a grant stands in the ledger, on an account of its own. What PostgreSQL refuses stands in the migration
of these walls: drawing outside its scope or after its end, and giving back more than it paid.
"""

from django.db import models
from django.db.models import F, Q

from billing.models.credits import CreditNote
from billing.models.invoices import Invoice, InvoiceLine
from billing.models.keys import ID_LENGTH, draw_id, grant_id, lapse_id, return_id
from broker.models import Offering
from tenants.models import Project
from tenants.models.tenants import TenantOwned

LONGEST_REASON = 200


class GrantSource(models.TextChoices):
    OPERATOR = "operator"
    BREACH = "breach"
    COUPON = "coupon"


class Grant(TenantOwned):
    """So much credit for a tenant, or for one project and all below it, or one offering; until it ends."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=grant_id)
    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="+", null=True)
    offering = models.ForeignKey(Offering, on_delete=models.PROTECT, related_name="+", null=True)
    currency = models.CharField(max_length=3)
    minor = models.BigIntegerField()
    priority = models.PositiveSmallIntegerField()  # the lowest is drawn first
    expires_at = models.DateTimeField(null=True)  # what is used from then on, it pays no longer
    source = models.CharField(max_length=10, choices=GrantSource)
    reason = models.CharField(max_length=LONGEST_REASON)
    idem = models.CharField(max_length=120)  # whoever gives the same twice gives it once
    given_at = models.DateTimeField()
    given_by = models.CharField(max_length=ID_LENGTH)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "idem"], name="grant_given_once"),
            models.CheckConstraint(condition=Q(minor__gt=0), name="grant_of_something"),
            models.CheckConstraint(
                condition=Q(expires_at__isnull=True) | Q(expires_at__gt=F("given_at")),
                name="grant_lasts_a_while",
            ),
            models.CheckConstraint(condition=Q(source__in=GrantSource.values), name="grant_source_known"),
        ]
        indexes = [models.Index(fields=["expires_at"], name="grant_ends")]

    def __str__(self) -> str:
        return self.id


class GrantDraw(TenantOwned):
    """What a grant paid of one line of an invoice, when that became final."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=draw_id)
    grant = models.ForeignKey(Grant, on_delete=models.PROTECT, related_name="draws")
    invoice = models.ForeignKey(Invoice, on_delete=models.PROTECT, related_name="grant_draws")
    line = models.ForeignKey(InvoiceLine, on_delete=models.PROTECT, related_name="+")
    minor = models.BigIntegerField()
    at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["grant", "line"], name="grant_draws_once_a_line"),
            models.CheckConstraint(condition=Q(minor__gt=0), name="grant_draw_of_something"),
        ]

    def __str__(self) -> str:
        return self.pk


class GrantReturn(TenantOwned):
    """What of a credit note went back to a grant that had paid for it; nowhere, where the grant had ended by then."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=return_id)
    credit_note = models.ForeignKey(CreditNote, on_delete=models.PROTECT, related_name="grant_returns")
    grant = models.ForeignKey(Grant, on_delete=models.PROTECT, related_name="returns")
    minor = models.BigIntegerField()
    lapsed = models.BooleanField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["credit_note", "grant"], name="grant_returned_once_a_note"),
            models.CheckConstraint(condition=Q(minor__gt=0), name="grant_return_of_something"),
        ]

    def __str__(self) -> str:
        return self.pk


class GrantLapse(TenantOwned):
    """What was left of a grant when it had ended and nothing could be drawn from it any longer; nothing, perhaps."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=lapse_id)
    grant = models.OneToOneField(Grant, on_delete=models.PROTECT, related_name="lapse")
    minor = models.BigIntegerField()
    at = models.DateTimeField()

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(minor__gte=0), name="grant_lapse_not_negative")]

    def __str__(self) -> str:
        return self.pk
