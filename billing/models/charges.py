"""Usage × price over one intersection of (transition, price version, period). Append-only."""

from typing import Self

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from tenants.models.tenants import Tenant, TenantOwned

ID = 40


SLICE_SECONDS, GIB_SECONDS = "slice_seconds", "gib_seconds"  # what is metered: leases, and volumes


class BillingRun(models.Model):
    """One run of rating or of a month's close; repeating a label resumes it."""

    label = models.CharField(max_length=80, unique=True)
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)
    tzdata_version = models.CharField(max_length=20, blank=True, default="")

    def __str__(self) -> str:
        return self.label


class RatingMark(TenantOwned):
    """How far a tenant's transitions are rated: every row of an older transaction is (rating.py)."""

    tenant = models.OneToOneField(Tenant, on_delete=models.PROTECT, primary_key=True, related_name="+")
    xid = models.BigIntegerField()
    storage_xid = models.BigIntegerField(null=True)  # the same of its volumes' steps

    def __str__(self) -> str:
        return f"{self.tenant_id} up to {self.xid}"


class ChargeKind(models.TextChoices):
    USAGE = "usage"  # seconds that were used
    ADJUST = "adjust"  # the same seconds given back, all of them less than nought; or a correction


class Charges(models.QuerySet["RatedCharge"]):
    def billed_in(self, period_id: int) -> Self:
        """Keep what the invoice of a month carries, by the indexes there are: its own seconds, and late ones."""
        own = Q(period_id=period_id, billed_period_id=period_id)
        late = Q(billed_period_id=period_id) & ~Q(billed_period_id=F("period_id"))
        return self.filter(own | late)


class RatedCharge(models.Model):
    """Its key is what it stands for, so that nothing is rated twice (billing.md D3)."""

    pk = models.CompositePrimaryKey(
        "lease_id", "seq", "price_version_id", "period_id", "meter", "kind", "part", "correction_id"
    )
    lease_id = models.CharField(max_length=ID)  # or of the volume, where that is what was metered
    seq = models.PositiveIntegerField()  # the Transition, or VolumeStep, that opened the segment
    price_version_id = models.BigIntegerField()
    period_id = models.BigIntegerField()  # the month its seconds fell into
    billed_period_id = models.BigIntegerField()  # the month whose invoice carries them; later for late news
    meter = models.CharField(max_length=20, default=SLICE_SECONDS)
    kind = models.CharField(max_length=8, choices=ChargeKind, default=ChargeKind.USAGE, db_default="usage")
    # The list's price holds before a price of the tenant's own and after it again: 0, 1 and so on.
    part = models.PositiveSmallIntegerField(default=0, db_default=0)
    # What a correction changes stands for itself: its parts of a stretch are 0, 1 and so on.
    correction_id = models.CharField(max_length=ID, default="", db_default="", blank=True)
    tenant_id = models.CharField(max_length=ID)
    project_id = models.CharField(max_length=ID)
    offering_id = models.CharField(max_length=ID)
    s = models.DateTimeField()
    e = models.DateTimeField()
    unit_seconds = (
        models.BigIntegerField()
    )  # seconds × quantity, or × GiB; of an adjustment, less than nought
    exact_num = models.DecimalField(max_digits=38, decimal_places=0)  # over 3600·10⁹
    run_id = models.BigIntegerField()
    recorded_at = models.DateTimeField(db_default=Now())

    objects = Charges.as_manager()

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
                fields=["billed_period_id"],
                name="charge_billed_late",
                condition=~Q(billed_period_id=F("period_id")),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.lease_id}#{self.seq}"
