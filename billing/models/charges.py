"""Rated charges: usage × price over one (transition, price version, period). Append-only."""

from typing import Self

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from tenants.models.tenants import Tenant, TenantOwned

MAX_ID_LENGTH = 40


SLICE_SECONDS, GIB_SECONDS = "slice_seconds", "gib_seconds"  # meters of leases and of volumes


class BillingRun(models.Model):
    """One run of rating or of a month's close; repeating a label resumes it."""

    label = models.CharField(max_length=80, unique=True)
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)
    tzdata_version = models.CharField(max_length=20, blank=True, default="")

    def __str__(self) -> str:
        return self.label


class RatingWatermark(TenantOwned):
    """How far a tenant's transitions are rated: everything written by older transactions (lease_rating.py)."""

    tenant = models.OneToOneField(Tenant, on_delete=models.PROTECT, primary_key=True, related_name="+")
    xid = models.BigIntegerField()
    storage_xid = models.BigIntegerField(null=True)  # the same for its volumes

    def __str__(self) -> str:
        return f"{self.tenant_id} up to {self.xid}"


class ChargeKind(models.TextChoices):
    USAGE = "usage"
    ADJUST = "adjust"  # the same seconds credited, as negative numbers; or a correction


class RatedChargeQuerySet(models.QuerySet["RatedCharge"]):
    def billed_in(self, period_id: int) -> Self:
        """Return the charges on a month's invoice: those of the month itself, and late ones.

        Written as two conditions so that existing indexes apply.
        """
        own = Q(period_id=period_id, billed_period_id=period_id)
        late = Q(billed_period_id=period_id) & ~Q(billed_period_id=F("period_id"))
        return self.filter(own | late)


class RatedCharge(models.Model):
    """Usage at one price; its key identifies the usage, so nothing is rated twice.

    See billing.md D3.
    """

    pk = models.CompositePrimaryKey(
        "lease_id", "seq", "price_version_id", "period_id", "meter", "kind", "part", "correction_id"
    )
    lease_id = models.CharField(max_length=MAX_ID_LENGTH)  # or the volume's id, by `meter`
    seq = models.PositiveIntegerField()  # of the Transition or VolumeSizeChange that opened the interval
    price_version_id = models.BigIntegerField()
    period_id = models.BigIntegerField()  # the month its seconds fell into
    billed_period_id = models.BigIntegerField()  # the month whose invoice carries them; later if they came late
    meter = models.CharField(max_length=20, default=SLICE_SECONDS)
    kind = models.CharField(max_length=8, choices=ChargeKind, default=ChargeKind.USAGE, db_default="usage")
    # The list price applies before and again after a tenant's own price: parts 0, 1 and so on.
    part = models.PositiveSmallIntegerField(default=0, db_default=0)
    # A correction's charges have their own parts of an interval: 0, 1 and so on.
    correction_id = models.CharField(max_length=MAX_ID_LENGTH, default="", db_default="", blank=True)
    tenant_id = models.CharField(max_length=MAX_ID_LENGTH)
    project_id = models.CharField(max_length=MAX_ID_LENGTH)
    offering_id = models.CharField(max_length=MAX_ID_LENGTH)
    s = models.DateTimeField()
    e = models.DateTimeField()
    unit_seconds = models.BigIntegerField()  # seconds × quantity, or × GiB; negative for an adjustment
    exact_num = models.DecimalField(max_digits=38, decimal_places=0)  # over 3600·10⁹
    run_id = models.BigIntegerField()
    recorded_at = models.DateTimeField(db_default=Now())

    objects = RatedChargeQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(kind="usage", correction_id="", unit_seconds__gt=0)
                | Q(kind="adjust", correction_id="", unit_seconds__lt=0, exact_num__lte=0)
                | Q(
                    Q(unit_seconds__lt=0, exact_num__lte=0) | Q(unit_seconds__gt=0, exact_num__gte=0),
                    ~Q(correction_id=""),
                    kind="adjust",
                ),
                name="charge_has_seconds",
            ),
            models.CheckConstraint(condition=Q(e__gt=F("s")), name="charge_ends_after_it_began"),
        ]
        indexes = [
            models.Index(fields=["period_id"], name="charge_of_month"),
            models.Index(
                fields=["billed_period_id"], name="charge_billed_late", condition=~Q(billed_period_id=F("period_id"))
            ),
        ]

    def __str__(self) -> str:
        return f"{self.lease_id}#{self.seq}"
