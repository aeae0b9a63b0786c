"""What a Kubernetes cluster has beside its nodes: the way in, and what was last seen of our objects there."""

from django.db import models

from broker.models.inventory import Cluster


class ClusterCredential(models.Model):
    """A cluster's kubeconfig, sealed: apart from the cluster, so that no page ever loads it by the way."""

    cluster = models.OneToOneField(
        Cluster, primary_key=True, on_delete=models.CASCADE, related_name="credential"
    )
    sealed = models.BinaryField()
    updated_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"credentials of {self.cluster_id}"


class Examination(models.Model):
    """The last examination of a cluster: asked for by an operator, done by a worker."""

    cluster = models.OneToOneField(
        Cluster, primary_key=True, on_delete=models.CASCADE, related_name="examination"
    )
    asked_at = models.DateTimeField()
    asked_by = models.CharField(max_length=254, blank=True, default="")
    done_at = models.DateTimeField(null=True)
    findings = models.JSONField(default=list)  # of the last one that was done

    def __str__(self) -> str:
        return f"examination of {self.cluster_id}"


class ClusterObject(models.Model):
    """One object of ours as the cluster's agent last saw it. The cluster is the truth; this spares asking it."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+", db_index=False)
    kind = models.CharField(max_length=60)
    namespace = models.CharField(max_length=63, blank=True, default="")
    name = models.CharField(max_length=253)
    uid = models.CharField(max_length=40)
    version = models.BigIntegerField()  # resourceVersion: comparable, and only ever replaced by a higher one
    order_name = models.CharField(max_length=63, blank=True, default="")  # the generation it belongs to
    body = models.JSONField(default=dict)  # what we read of it
    seen_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "kind", "namespace", "name"], name="object_once_per_cluster"
            )
        ]
        indexes = [models.Index(fields=["cluster", "order_name"], name="object_of_order")]

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


class ClusterWatch(models.Model):
    """How far the agent has followed one kind of object in one cluster."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="watches", db_index=False)
    kind = models.CharField(max_length=60)
    version = models.BigIntegerField()
    synced_at = models.DateTimeField()  # the last whole list
    heard_at = models.DateTimeField()  # the last word of the server, be it a bookmark

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "kind"], name="watch_once_per_cluster")]

    def __str__(self) -> str:
        return f"{self.kind} in {self.cluster_id}"
