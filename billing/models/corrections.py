"""Corrections of wrong charges: proposed with a diff, approved by other people, booked once.

PostgreSQL guarantees that author and approvers are different people, that from the limit on there are
two approvers, that nothing is booked before approval, and that a proposal never changes.
"""

from django.db import models
from django.db.models import F, Q

from billing.models.credit_notes import MAX_REASON_LENGTH
from billing.models.default_ids import ID_LENGTH, correction_id
from billing.models.prices import PriceVersion
from tenants.models.tenants import TenantOwned

MAX_PERSON_LENGTH = 254


class CorrectionKind(models.TextChoices):
    LEASE = "lease"  # seconds of one lease that were wrongly charged or not charged
    PRICE = "price"  # usage charged at a wrong price version


class CorrectionStatus(models.TextChoices):
    PROPOSED = "proposed"
    APPROVED = "approved"  # a worker books it, tenant by tenant
    BOOKED = "booked"
    WITHDRAWN = "withdrawn"


class Correction(models.Model):
    """A proposed correction and its approvals; the amounts are in its shares, one per tenant."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=correction_id)
    kind = models.CharField(max_length=5, choices=CorrectionKind)
    lease_id = models.CharField(max_length=ID_LENGTH, blank=True, default="")
    charge = models.BooleanField(default=False)  # for a lease: True charges more, False credits
    price_version = models.ForeignKey(PriceVersion, on_delete=models.PROTECT, null=True, related_name="+")
    nano_per_hour = models.BigIntegerField(null=True)  # the correct price
    currency = models.CharField(max_length=3)
    since = models.DateTimeField()
    until = models.DateTimeField()
    reason = models.CharField(max_length=MAX_REASON_LENGTH)
    minor = models.BigIntegerField()  # sum of the absolute changes of all lines, before tax
    limit_minor = models.BigIntegerField()  # from this amount on it needs a second approver
    seal = models.CharField(max_length=64)  # SHA-256 of the diff that was shown
    status = models.CharField(max_length=9, choices=CorrectionStatus, default=CorrectionStatus.PROPOSED)
    author_id = models.CharField(max_length=ID_LENGTH)
    author = models.CharField(max_length=MAX_PERSON_LENGTH)
    proposed_at = models.DateTimeField()
    approver_id = models.CharField(max_length=ID_LENGTH, null=True)
    approver = models.CharField(max_length=MAX_PERSON_LENGTH, blank=True, default="")
    approved_at = models.DateTimeField(null=True)
    second_approver_id = models.CharField(max_length=ID_LENGTH, null=True)
    second_approver = models.CharField(max_length=MAX_PERSON_LENGTH, blank=True, default="")
    second_approved_at = models.DateTimeField(null=True)
    closed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=(Q(approver_id=None) | ~Q(approver_id=F("author_id")))
                & (
                    Q(second_approver_id=None)
                    | (~Q(second_approver_id=F("author_id")) & ~Q(second_approver_id=F("approver_id")))
                ),
                name="correction_by_different_people",
            ),
            models.CheckConstraint(
                condition=~Q(status__in=["approved", "booked"])
                | (
                    Q(approver_id__isnull=False) & (Q(minor__lt=F("limit_minor")) | Q(second_approver_id__isnull=False))
                ),
                name="correction_is_approved_first",
            ),
            models.CheckConstraint(
                condition=Q(second_approver_id=None) | Q(approver_id__isnull=False),
                name="correction_first_before_second",
            ),
            models.CheckConstraint(condition=Q(since__lt=F("until")), name="correction_of_some_time"),
            models.CheckConstraint(
                condition=Q(kind="lease", price_version=None, nano_per_hour=None) & ~Q(lease_id="")
                | Q(kind="price", lease_id="", price_version__isnull=False, nano_per_hour__gte=0),
                name="correction_of_one_thing",
            ),
        ]

    def __str__(self) -> str:
        return self.pk

    @property
    def needs_two(self) -> bool:
        return self.minor >= self.limit_minor


class TenantCorrectionStatus(models.TextChoices):
    WAITING = "waiting"
    BOOKED = "booked"
    OUTDATED = "outdated"  # the charges changed since the diff was shown: propose it again


class TenantCorrection(TenantOwned):
    """The change for one tenant, line by line, as shown before approval."""

    id = models.BigAutoField(primary_key=True)
    correction = models.ForeignKey(Correction, on_delete=models.PROTECT, related_name="shares")
    diff = models.JSONField()  # its lines, as domain/corrections.py writes them
    seal = models.CharField(max_length=64)
    minor = models.BigIntegerField()  # before tax; negative is a credit
    status = models.CharField(max_length=8, choices=TenantCorrectionStatus, default=TenantCorrectionStatus.WAITING)
    settled_at = models.DateTimeField(null=True)
    last_error = models.CharField(max_length=300, blank=True, default="")  # why it is still waiting

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["correction", "tenant"], name="correction_once_a_tenant"),
            models.CheckConstraint(
                condition=Q(status="waiting", settled_at=None) | (~Q(status="waiting") & ~Q(settled_at=None)),
                name="share_settled_at_a_moment",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.correction_id} {self.tenant_id}"


class CorrectedInterval(TenantOwned):
    """A corrected interval as it was booked, as a charge or a credit. Append-only."""

    id = models.BigAutoField(primary_key=True)
    share = models.ForeignKey(TenantCorrection, on_delete=models.PROTECT, related_name="parts")
    n = models.PositiveIntegerField()
    lease_id = models.CharField(max_length=ID_LENGTH)
    seq = models.PositiveIntegerField()
    price_version_id = models.BigIntegerField()
    period_id = models.BigIntegerField()
    billed_period_id = models.BigIntegerField()  # the month whose invoice carries it or is credited
    project_id = models.CharField(max_length=ID_LENGTH)
    offering_id = models.CharField(max_length=ID_LENGTH)
    s = models.DateTimeField()
    e = models.DateTimeField()
    quantity = models.PositiveIntegerField()
    nano_per_hour = models.BigIntegerField()  # per unit: the price charged, before the correction
    unit_seconds = models.BigIntegerField()  # 0 for a price correction
    exact_num = models.DecimalField(max_digits=38, decimal_places=0)
    final = models.BooleanField()  # on a final invoice, so that a credit note credits it

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "share", "n"], name="correction_part_once"),
            models.CheckConstraint(condition=Q(s__lt=F("e")), name="correction_part_of_some_time"),
        ]
        indexes = [models.Index(fields=["lease_id"], name="correction_of_lease")]

    def __str__(self) -> str:
        return f"{self.share_id} {self.n}"
