"""What should have been charged otherwise: proposed with its diff, approved by others, booked once.

What PostgreSQL promises: no two of those who decide are the same person, from the limit on there are two beside the
author, nothing is booked before that, and what was proposed never changes.
"""

from django.db import models
from django.db.models import F, Q

from billing.models.credits import LONGEST_REASON
from billing.models.keys import ID_LENGTH, correction_id
from billing.models.prices import PriceVersion
from tenants.models.tenants import TenantOwned

PERSON = 254


class CorrectionKind(models.TextChoices):
    LEASE = "lease"  # seconds of one lease that should not, or should, have been charged
    PRICE = "price"  # what was charged at a price version that was published wrongly


class CorrectionStatus(models.TextChoices):
    PROPOSED = "proposed"
    APPROVED = "approved"  # a worker books it, tenant by tenant
    BOOKED = "booked"
    WITHDRAWN = "withdrawn"


class Correction(models.Model):
    """What an operator proposes, and who approved it. Its amounts stand in its shares, one for each tenant."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=correction_id)
    kind = models.CharField(max_length=5, choices=CorrectionKind)
    lease_id = models.CharField(max_length=ID_LENGTH, blank=True, default="")
    charge = models.BooleanField(default=False)  # of a lease: charges more; else gives back
    price_version = models.ForeignKey(PriceVersion, on_delete=models.PROTECT, null=True, related_name="+")
    nano_per_hour = models.BigIntegerField(null=True)  # what the price should have been
    currency = models.CharField(max_length=3)
    since = models.DateTimeField()
    until = models.DateTimeField()
    reason = models.CharField(max_length=LONGEST_REASON)
    minor = models.BigIntegerField()  # what all its lines change by, before tax, whichever way
    limit_minor = models.BigIntegerField()  # from which on it needs a second approver
    seal = models.CharField(max_length=64)  # SHA-256 of the diff as it was shown
    status = models.CharField(max_length=9, choices=CorrectionStatus, default=CorrectionStatus.PROPOSED)
    author_id = models.CharField(max_length=ID_LENGTH)
    author = models.CharField(max_length=PERSON)
    proposed_at = models.DateTimeField()
    approver_id = models.CharField(max_length=ID_LENGTH, null=True)
    approver = models.CharField(max_length=PERSON, blank=True, default="")
    approved_at = models.DateTimeField(null=True)
    second_approver_id = models.CharField(max_length=ID_LENGTH, null=True)
    second_approver = models.CharField(max_length=PERSON, blank=True, default="")
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
                    Q(approver_id__isnull=False)
                    & (Q(minor__lt=F("limit_minor")) | Q(second_approver_id__isnull=False))
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


class ShareStatus(models.TextChoices):
    WAITING = "waiting"
    BOOKED = "booked"
    OUTDATED = "outdated"  # what was charged has changed since it was shown: it is proposed anew


class CorrectionShare(TenantOwned):
    """What a correction changes for one tenant, line by line, as it was shown before anybody approved it."""

    id = models.BigAutoField(primary_key=True)
    correction = models.ForeignKey(Correction, on_delete=models.PROTECT, related_name="shares")
    diff = models.JSONField()  # its lines, as domain/correcting.py writes them
    seal = models.CharField(max_length=64)
    minor = models.BigIntegerField()  # before tax; less than nought gives back
    status = models.CharField(max_length=8, choices=ShareStatus, default=ShareStatus.WAITING)
    settled_at = models.DateTimeField(null=True)
    trouble = models.CharField(max_length=300, blank=True, default="")  # why it waits still

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


class CorrectionPart(TenantOwned):
    """A stretch that was corrected, as it was booked: a charge of an open month, or in a credit note. Append-only."""

    id = models.BigAutoField(primary_key=True)
    share = models.ForeignKey(CorrectionShare, on_delete=models.PROTECT, related_name="parts")
    n = models.PositiveIntegerField()
    lease_id = models.CharField(max_length=ID_LENGTH)
    seq = models.PositiveIntegerField()
    price_version_id = models.BigIntegerField()
    period_id = models.BigIntegerField()
    billed_period_id = models.BigIntegerField()  # whose invoice carries it, or is credited
    project_id = models.CharField(max_length=ID_LENGTH)
    offering_id = models.CharField(max_length=ID_LENGTH)
    s = models.DateTimeField()
    e = models.DateTimeField()
    quantity = models.PositiveIntegerField()
    nano_per_hour = models.BigIntegerField()  # for one: what it was charged at, or, of a price, before
    unit_seconds = models.BigIntegerField()  # 0 of a price
    exact_num = models.DecimalField(max_digits=38, decimal_places=0)
    final = models.BooleanField()  # it stands on a final invoice: a credit note gives it back

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "share", "n"], name="correction_part_once"),
            models.CheckConstraint(condition=Q(s__lt=F("e")), name="correction_part_of_some_time"),
        ]
        indexes = [models.Index(fields=["lease_id"], name="correction_of_lease")]

    def __str__(self) -> str:
        return f"{self.share_id} {self.n}"
