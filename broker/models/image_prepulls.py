"""Images that a cluster keeps on its GPU nodes."""

from django.db import models

from broker.models.inventory import Cluster
from broker.models.keys import ID_LENGTH, image_prepull_id


class ImagePrepull(models.Model):
    """One image of a cluster, with how many nodes have it."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=image_prepull_id)
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="image_prepulls")
    image = models.CharField(max_length=300)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=ID_LENGTH)
    created_by_label = models.CharField(max_length=254)
    # As last reported by the cluster.
    nodes_total = models.PositiveIntegerField(default=0)
    nodes_ready = models.PositiveIntegerField(default=0)
    problem = models.CharField(max_length=300, blank=True, default="")
    checked_at = models.DateTimeField(null=True)  # null: not requested from the cluster yet
    ready_since = models.DateTimeField(null=True)  # since when every node has it
    removed_at = models.DateTimeField(null=True)  # until the cluster has confirmed the removal

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "image"], name="image_prepulled_once")]

    def __str__(self) -> str:
        return self.image
