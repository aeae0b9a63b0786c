"""Whose a cluster's objects are, and which of them no lease accounts for."""

from django.db import models
from django.db.models import Q

from broker.models.inventory import Cluster
from broker.models.keys import ID_LENGTH, installation_id


class Installation(models.Model):
    """The one row that tells this product from another in the same cluster: its id is on every object of ours."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    mark = models.CharField(max_length=ID_LENGTH, default=installation_id)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=1), name="installation_once")]

    def __str__(self) -> str:
        return self.mark


def our_mark() -> str:
    """Return this installation's id, made when it is first asked for and then the same for ever."""
    return Installation.objects.get_or_create(pk=1)[0].mark


class Orphan(models.Model):
    """Something of ours in a cluster that no lease accounts for. It is deleted late, and never with many others."""

    cluster = models.ForeignKey(Cluster, null=True, on_delete=models.CASCADE, related_name="orphans")
    name = models.CharField(
        max_length=80
    )  # an order's; None as its cluster: somewhere in the simulated fleet
    known = models.BooleanField(default=False)  # our books say that its lease went on without it
    found_at = models.DateTimeField()
    held_at = models.DateTimeField(null=True)  # too many at once: it waits for an operator's word
    agreed_at = models.DateTimeField(null=True)  # an operator said that it may go
    told_at = models.DateTimeField(null=True)  # it was told to go, and may take its time

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "name"], name="orphan_once_per_cluster", nulls_distinct=False
            )
        ]

    def __str__(self) -> str:
        return self.name
