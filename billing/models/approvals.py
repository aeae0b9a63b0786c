"""Limits above which launches need approval, and the requests for it."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from billing.domain.approvals import Approved, Approver, LaunchLimits, LaunchSize
from billing.models.default_ids import ID_LENGTH, approval_request_id
from broker.models import Lease, LeaseArray, Offering
from tenants.models import Project
from tenants.models.tenants import TenantOwned

MAX_REASON_LENGTH = 300
APPROVER_CHOICES = [(each.value, each.value.capitalize()) for each in Approver]


class ApprovalLimit(TenantOwned):
    """Limits of a tenant's launches, set by its owners or by operators; null is none."""

    id = models.BigAutoField(primary_key=True)
    set_by = models.CharField(max_length=8, choices=APPROVER_CHOICES)
    currency = models.CharField(max_length=3)
    max_minor = models.BigIntegerField(null=True)
    max_milli_gpus = models.BigIntegerField(null=True)
    max_duration_s = models.BigIntegerField(null=True)
    set_at = models.DateTimeField()
    set_by_label = models.CharField(max_length=254)
    version = models.PositiveIntegerField(default=1)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "set_by"], name="approval_limit_once"),
            models.CheckConstraint(
                condition=Q(set_by__in=[each.value for each in Approver]), name="approval_limit_set_by_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tenant_id} by {self.set_by}"

    @property
    def limits(self) -> LaunchLimits:
        return LaunchLimits(Approver(self.set_by), self.max_minor, self.max_milli_gpus, self.max_duration_s)


class ApprovalKind(models.TextChoices):
    LAUNCH = "launch"
    EXTENSION = "extension"
    START = "start"  # of a stopped lease


class ApprovalState(models.TextChoices):
    WAITING = "waiting"
    APPROVED = "approved"  # and done
    DECLINED = "declined"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"  # by whoever asked


class ApprovalRequest(TenantOwned):
    """A launch, extension or start that waits for approval, with what it may come to."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=approval_request_id)
    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="+", db_index=False)
    kind = models.CharField(max_length=9, choices=ApprovalKind)
    state = models.CharField(max_length=9, choices=ApprovalState, default=ApprovalState.WAITING)
    name = models.CharField(max_length=120)  # of the lease or array
    offering = models.ForeignKey(Offering, on_delete=models.PROTECT, related_name="+", db_index=False)
    quantity = models.PositiveIntegerField()
    array_size = models.PositiveIntegerField(default=1)  # 1: a single lease
    request = models.JSONField(default=dict)  # of a launch; variables encrypted
    more_s = models.PositiveIntegerField(null=True)  # of an extension
    # Of an extension or start its lease; of a launch what was launched once it was approved.
    lease = models.ForeignKey(Lease, on_delete=models.PROTECT, related_name="+", null=True, db_index=False)
    array = models.ForeignKey(LeaseArray, on_delete=models.PROTECT, related_name="+", null=True, db_index=False)
    cost_minor = models.BigIntegerField()  # the most it may cost; what is approved
    currency = models.CharField(max_length=3)
    milli_gpus = models.BigIntegerField()
    duration_s = models.BigIntegerField()
    exceeded = ArrayField(models.CharField(max_length=20))  # such as tenant:money
    note = models.CharField(max_length=MAX_REASON_LENGTH, blank=True, default="")  # by whoever asks
    requested_by_kind = models.CharField(max_length=20)
    requested_by = models.CharField(max_length=ID_LENGTH)
    requested_by_label = models.CharField(max_length=254)
    requested_with_token = models.CharField(max_length=ID_LENGTH, blank=True, default="")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    needs_tenant = models.BooleanField()
    needs_operator = models.BooleanField()
    tenant_approved_at = models.DateTimeField(null=True)
    tenant_approved_by = models.CharField(max_length=254, blank=True, default="")
    operator_approved_at = models.DateTimeField(null=True)
    operator_approved_by = models.CharField(max_length=254, blank=True, default="")
    decided_at = models.DateTimeField(null=True)
    decided_by = models.CharField(max_length=254, blank=True, default="")
    reason = models.CharField(max_length=MAX_REASON_LENGTH, blank=True, default="")  # of the decision
    version = models.PositiveIntegerField(default=1)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(kind__in=ApprovalKind.values), name="approval_kind_known"),
            models.CheckConstraint(condition=Q(state__in=ApprovalState.values), name="approval_state_known"),
            models.CheckConstraint(
                condition=~Q(state=ApprovalState.APPROVED)
                | (Q(needs_tenant=False) | Q(tenant_approved_at__isnull=False))
                & (Q(needs_operator=False) | Q(operator_approved_at__isnull=False)),
                name="approved_by_all_it_needs",
            ),
        ]
        indexes = [
            models.Index(fields=["tenant", "-id"], name="approvals_newest_first"),
            models.Index(fields=["expires_at"], name="approvals_waiting", condition=Q(state="waiting")),
            models.Index(fields=["lease"], name="approvals_of_lease", condition=Q(lease__isnull=False)),
            models.Index(fields=["array"], name="approvals_of_array", condition=Q(array__isnull=False)),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def size(self) -> LaunchSize:
        return LaunchSize(self.cost_minor, self.milli_gpus, self.duration_s)

    @property
    def approved(self) -> Approved:
        """Return what was approved, and by whom."""
        by = {Approver.TENANT: self.tenant_approved_at, Approver.OPERATOR: self.operator_approved_at}
        return Approved(self.size, frozenset(each for each, at in by.items() if at is not None))

    def waits_for(self, approver: Approver) -> bool:
        """Return whether an approver's decision is missing."""
        if self.state != ApprovalState.WAITING:
            return False
        if approver is Approver.TENANT:
            return self.needs_tenant and self.tenant_approved_at is None
        return self.needs_operator and self.operator_approved_at is None
