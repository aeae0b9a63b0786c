"""Installation id and orphans: objects in a cluster that no lease accounts for."""

from django.db import models
from django.db.models import Q

from broker.models.inventory import Cluster
from broker.models.keys import ID_LENGTH, installation_id


class Installation(models.Model):
    """The single row with this installation's id.

    The id is on every object we create, so that two installations may share a cluster.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    mark = models.CharField(max_length=ID_LENGTH, default=installation_id)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=1), name="installation_once")]

    def __str__(self) -> str:
        return self.mark


def get_installation_id() -> str:
    """Return this installation's id; it is created on first use and never changes."""
    return Installation.objects.get_or_create(pk=1)[0].mark


class Orphan(models.Model):
    """One of our objects in a cluster that no lease accounts for.

    It is deleted after a delay, and never together with many others unless an operator agrees.
    """

    cluster = models.ForeignKey(Cluster, null=True, on_delete=models.CASCADE, related_name="orphans")
    name = models.CharField(max_length=80)  # of a provision spec; null as cluster: the simulated clusters
    known = models.BooleanField(default=False)  # our rows know that its lease went on without it
    found_at = models.DateTimeField()
    held_at = models.DateTimeField(null=True)  # too many at once: waits for an operator's approval
    deletion_approved_at = models.DateTimeField(null=True)  # an operator approved its removal
    deletion_requested_at = models.DateTimeField(null=True)  # its deletion was requested, which may take a while

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "name"], name="orphan_once_per_cluster", nulls_distinct=False)
        ]

    def __str__(self) -> str:
        return self.name
