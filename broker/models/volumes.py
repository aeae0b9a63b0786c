"""Storage that outlives a lease: made by a cluster for the first lease that uses it, kept until it is deleted."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from broker.domain.states import VolumeState
from broker.models.inventory import Cluster
from broker.models.keys import ID_LENGTH, volume_id
from tenants.models import Project
from tenants.models.tenants import Tenant, TenantOwned

THERE = ~Q(state=VolumeState.DELETED.value)


class VolumeQuerySet(models.QuerySet["Volume"]):
    def for_tenant(self, tenant: Tenant) -> "VolumeQuerySet":
        return self.filter(tenant=tenant)

    def there(self) -> "VolumeQuerySet":
        """Volumes that are not over: their room is taken, and counts."""
        return self.filter(THERE)


class Volume(TenantOwned):
    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=volume_id)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", db_index=False)
    project = models.ForeignKey(Project, on_delete=models.PROTECT, db_index=False)
    name = models.CharField(max_length=120)
    size_gib = models.PositiveIntegerField()
    state = models.CharField(max_length=12, default=VolumeState.READY.value)
    # Where it lies: chosen with the first lease's place, and for good once a lease has been active with it.
    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, null=True, related_name="+")
    used_at = models.DateTimeField(null=True)  # since when there may be something on it
    # Clusters that a first lease went on without: an empty claim may be left there, and goes with the volume.
    left_in = models.JSONField(default=list)
    created_at = models.DateTimeField()
    deleted_at = models.DateTimeField(null=True)
    due_at = models.DateTimeField(null=True)  # when a worker should look again
    requested_by = models.CharField(max_length=ID_LENGTH)
    requested_by_label = models.CharField(max_length=254)
    version = models.PositiveIntegerField(default=1)

    objects = VolumeQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=[s.value for s in VolumeState]), name="volume_state_known"
            ),
            models.CheckConstraint(condition=Q(size_gib__gte=1), name="volume_holds_something"),
            models.UniqueConstraint(
                fields=["tenant", "project", "name"], condition=THERE, name="volume_named_once"
            ),
        ]
        indexes = [
            models.Index(fields=["tenant", "-id"], name="volume_newest_first"),
            models.Index(fields=["due_at"], name="volume_due", condition=Q(due_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return self.name


class VolumeStep(models.Model):
    """The chain that storage is metered by: append-only, each step bound to the one before (migration 0029).

    Between two steps a volume had `prev_gib`; with `size_gib` 0 it is over. `at` is whole seconds. It begins when
    there may be something on the volume, and ends when somebody deletes it.
    """

    pk = models.CompositePrimaryKey("volume_id", "seq")
    volume_id = models.CharField(max_length=ID_LENGTH)
    seq = models.PositiveIntegerField()
    tenant_id = models.CharField(max_length=ID_LENGTH)
    project_id = models.CharField(max_length=ID_LENGTH)
    offering_id = models.CharField(max_length=ID_LENGTH)  # storage of the region that it lies in
    at = models.DateTimeField()
    prev_seq = models.PositiveIntegerField(null=True)
    prev_at = models.DateTimeField(null=True)
    prev_gib = models.PositiveIntegerField(null=True)
    size_gib = models.PositiveIntegerField()
    cause = models.CharField(max_length=200)  # one plain sentence for people
    # Written by the database: the moment of writing, and by which transaction.
    recorded_at = models.DateTimeField(db_default=Now())
    xid = models.BigIntegerField(db_default=0)

    class Meta:
        indexes = [models.Index(fields=["tenant_id", "xid"], name="volume_step_news")]

    def __str__(self) -> str:
        return f"{self.volume_id}#{self.seq} {self.size_gib} GiB"
