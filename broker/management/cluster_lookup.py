"""The registered Kubernetes cluster that a command names."""

from django.core.management.base import CommandError

from broker.models import Cluster


def find_cluster(text: str) -> Cluster:
    """Return a registered Kubernetes cluster by its name or id."""
    ours = Cluster.objects.filter(provisioner="kubernetes")
    cluster = ours.filter(name=text).first() or ours.filter(pk=text).first()
    if cluster is None:
        known = ", ".join(ours.order_by("name").values_list("name", flat=True)) or "none"
        raise CommandError(f"Kubernetes cluster {text!r} does not exist. Registered: {known}.")
    return cluster
