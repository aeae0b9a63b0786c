"""Granted credit, its use on invoices, its returns and its expiry. Append-only.

The balance of a grant is in the ledger, on an account of its own. PostgreSQL refuses to draw outside the
grant's scope or after its expiry, and to return more than it paid; see
triggers_grants.sql.
"""

from django.db import models
from django.db.models import F, Q

from billing.models.credit_notes import CreditNote
from billing.models.default_ids import ID_LENGTH, grant_expiry_id, grant_id, grant_return_id, payment_draw_id
from billing.models.invoices import Invoice, InvoiceLine
from broker.models import Offering
from tenants.models import Project
from tenants.models.tenants import TenantOwned

MAX_REASON_LENGTH = 200


class GrantSource(models.TextChoices):
    OPERATOR = "operator"
    BREACH = "breach"
    COUPON = "coupon"


class Grant(TenantOwned):
    """Credit for a tenant, a project and its sub-projects, or one offering, until it expires."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=grant_id)
    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="+", null=True)
    offering = models.ForeignKey(Offering, on_delete=models.PROTECT, related_name="+", null=True)
    currency = models.CharField(max_length=3)
    minor = models.BigIntegerField()
    priority = models.PositiveSmallIntegerField()  # the lowest number is drawn first
    expires_at = models.DateTimeField(null=True)  # it does not pay for usage from then on
    source = models.CharField(max_length=10, choices=GrantSource)
    reason = models.CharField(max_length=MAX_REASON_LENGTH)
    idem = models.CharField(max_length=120)  # idempotency key
    given_at = models.DateTimeField()
    given_by = models.CharField(max_length=ID_LENGTH)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "idem"], name="grant_given_once"),
            models.CheckConstraint(condition=Q(minor__gt=0), name="grant_of_something"),
            models.CheckConstraint(
                condition=Q(expires_at__isnull=True) | Q(expires_at__gt=F("given_at")), name="grant_lasts_a_while"
            ),
            models.CheckConstraint(condition=Q(source__in=GrantSource.values), name="grant_source_known"),
        ]
        indexes = [models.Index(fields=["expires_at"], name="grant_ends")]

    def __str__(self) -> str:
        return self.id


class GrantDraw(TenantOwned):
    """What a grant paid of one invoice line at finalization."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=payment_draw_id)
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
    """What a credit note returned to a grant that had paid for the line.

    It is forfeited (`lapsed`) if the grant had expired by then.
    """

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=grant_return_id)
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


class GrantExpiry(TenantOwned):
    """The unused rest of a grant that expired or was taken back, possibly zero.

    Recorded once nothing can be drawn from the grant any longer.
    """

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=grant_expiry_id)
    grant = models.OneToOneField(Grant, on_delete=models.PROTECT, related_name="lapse")
    minor = models.BigIntegerField()
    at = models.DateTimeField()
    revoked_by = models.CharField(max_length=254, blank=True, default="", db_default="")  # who took it back, if anybody
    reason = models.CharField(max_length=MAX_REASON_LENGTH, blank=True, default="", db_default="")

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(minor__gte=0), name="grant_lapse_not_negative"),
            models.CheckConstraint(
                condition=Q(revoked_by="", reason="") | (~Q(revoked_by="") & ~Q(reason="")),
                name="grant_revoked_for_a_reason",
            ),
        ]

    def __str__(self) -> str:
        return self.pk
