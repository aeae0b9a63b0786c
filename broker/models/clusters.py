"""Kubernetes-specific data of a cluster: credentials, examination, observed objects, watch positions."""

from django.db import models

from broker.models.inventory import Cluster


class ClusterCredential(models.Model):
    """Encrypted kubeconfig of a cluster, kept in a table of its own.

    It is separate from the cluster so that no page loads it by accident.
    """

    cluster = models.OneToOneField(Cluster, primary_key=True, on_delete=models.CASCADE, related_name="credential")
    sealed = models.BinaryField()
    updated_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"credentials of {self.cluster_id}"


class ClusterExamination(models.Model):
    """The latest examination of a cluster, requested by an operator and run by a worker."""

    cluster = models.OneToOneField(Cluster, primary_key=True, on_delete=models.CASCADE, related_name="examination")
    asked_at = models.DateTimeField()
    asked_by = models.CharField(max_length=254, blank=True, default="")
    done_at = models.DateTimeField(null=True)
    findings = models.JSONField(default=list)  # of the last finished examination

    def __str__(self) -> str:
        return f"examination of {self.cluster_id}"


class ClusterObject(models.Model):
    """One of our objects as the cluster's agent last observed it.

    The cluster is the source of truth; this row saves a request to it.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+", db_index=False)
    kind = models.CharField(max_length=60)
    namespace = models.CharField(max_length=63, blank=True, default="")
    name = models.CharField(max_length=253)
    uid = models.CharField(max_length=40)
    version = models.BigIntegerField()  # resourceVersion: comparable, and only replaced by a higher one
    spec_name = models.CharField(max_length=63, blank=True, default="")  # name of the provision spec it belongs to
    body = models.JSONField(default=dict)  # the fields that we read
    seen_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "kind", "namespace", "name"], name="object_once_per_cluster")
        ]
        indexes = [models.Index(fields=["cluster", "spec_name"], name="object_of_order")]

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


class ClusterWatch(models.Model):
    """The position of the agent's watch on one kind of object in one cluster."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="watches", db_index=False)
    kind = models.CharField(max_length=60)
    version = models.BigIntegerField()
    synced_at = models.DateTimeField()  # the last complete list
    last_event_at = models.DateTimeField()  # the last event from the server, bookmarks included

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "kind"], name="watch_once_per_cluster")]

    def __str__(self) -> str:
        return f"{self.kind} in {self.cluster_id}"
