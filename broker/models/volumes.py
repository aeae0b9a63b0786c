"""Volumes: storage that outlives a lease.

The cluster creates a volume for the first lease that uses it, and it is kept until it is deleted.
"""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from broker.domain.lifecycle.states import VolumeState
from broker.models.inventory import Cluster
from broker.models.keys import ID_LENGTH, volume_id
from tenants.models import Project
from tenants.models.tenants import Tenant, TenantOwned

NOT_DELETED = ~Q(state=VolumeState.DELETED.value)


class VolumeQuerySet(models.QuerySet["Volume"]):
    def existing(self) -> "VolumeQuerySet":
        """Return volumes that are not deleted: their storage is used and counts."""
        return self.filter(NOT_DELETED)


class Volume(TenantOwned):
    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=volume_id)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", db_index=False)
    project = models.ForeignKey(Project, on_delete=models.PROTECT, db_index=False)
    name = models.CharField(max_length=120)
    size_gib = models.PositiveIntegerField()
    state = models.CharField(max_length=12, default=VolumeState.READY.value)
    # Its cluster: chosen with the first lease's placement, and permanent once a lease was active with it.
    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, null=True, related_name="+")
    used_at = models.DateTimeField(null=True)  # since when it may hold data
    # Clusters abandoned by its first lease: an empty PVC may be left there, which is deleted with the volume.
    remaining_clusters = models.JSONField(default=list)
    created_at = models.DateTimeField()
    deleted_at = models.DateTimeField(null=True)
    due_at = models.DateTimeField(null=True)  # when a worker should check it again
    requested_by = models.CharField(max_length=ID_LENGTH)
    requested_by_label = models.CharField(max_length=254)
    version = models.PositiveIntegerField(default=1)

    objects = VolumeQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(state__in=[s.value for s in VolumeState]), name="volume_state_known"),
            models.CheckConstraint(condition=Q(size_gib__gte=1), name="volume_holds_something"),
            models.UniqueConstraint(
                fields=["tenant", "project", "name"], condition=NOT_DELETED, name="volume_named_once"
            ),
        ]
        indexes = [
            models.Index(fields=["tenant", "-id"], name="volume_newest_first"),
            models.Index(fields=["due_at"], name="volume_due", condition=Q(due_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return self.name


class VolumeSizeChange(models.Model):
    """Append-only record of a volume's size; storage is metered by this chain.

    Each row is chained to the one before (migration 0029). Between two rows the volume had `prev_gib`;
    `size_gib` 0 ends the chain. `at` is whole seconds. The chain starts when there may be data on the
    volume and ends when somebody deletes it.
    """

    pk = models.CompositePrimaryKey("volume_id", "seq")
    volume_id = models.CharField(max_length=ID_LENGTH)
    seq = models.PositiveIntegerField()
    tenant_id = models.CharField(max_length=ID_LENGTH)
    project_id = models.CharField(max_length=ID_LENGTH)
    offering_id = models.CharField(max_length=ID_LENGTH)  # the storage offering of its region
    at = models.DateTimeField()
    prev_seq = models.PositiveIntegerField(null=True)
    prev_at = models.DateTimeField(null=True)
    prev_gib = models.PositiveIntegerField(null=True)
    size_gib = models.PositiveIntegerField()
    cause = models.CharField(max_length=200)  # one plain sentence for people
    # Written by the database: the time of writing, and the transaction.
    recorded_at = models.DateTimeField(db_default=Now())
    xid = models.BigIntegerField(db_default=0)

    class Meta:
        indexes = [models.Index(fields=["tenant_id", "xid"], name="volume_step_news")]

    def __str__(self) -> str:
        return f"{self.volume_id}#{self.seq} {self.size_gib} GiB"
