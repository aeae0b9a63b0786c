"""Connection to one cluster as its row describes it: transport and slice driver."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Max

from broker.domain.geometry.cpu_blocks import CPU_MODEL_NAME
from broker.domain.geometry.gpu_models import load_models
from broker.models import Cluster, ClusterCredential, ClusterWatch, GpuModel, get_installation_id
from broker.provisioners.base import ClusterUnreachable
from broker.provisioners.kubernetes.client.transport import Transport
from broker.provisioners.kubernetes.drivers.cluster_driver import ClusterDriver
from broker.provisioners.kubernetes.drivers.driver_registry import create_driver
from broker.provisioners.kubernetes.observe.observation_cache import ObservationCache
from broker.provisioners.kubernetes.render.allowed_namespaces import resolve_allowed_namespaces
from ports import crypto


@dataclass(frozen=True)
class ClusterConnection:
    """How to reach a cluster and request slices from it."""

    transport: Transport
    driver: ClusterDriver
    installation: str = ""  # ours; objects of another installation are left alone
    uid: Callable[[], str] = str  # of the registered cluster; empty until it was first read
    reached: Callable[[], int] = int  # the latest resource version that we have seen
    memory: ObservationCache | None = None  # observations its agent recorded
    allowed_namespaces: Callable[[], tuple[str, ...]] = tuple  # the namespaces from which people reach leases


def connect_to_cluster(cluster_id: str, kubeconfig: Callable[[], Mapping[str, Any]] | None = None) -> ClusterConnection:
    """Create the connection to a cluster.

    Credentials are read at every connect, so new ones are picked up.
    """
    cluster = Cluster.objects.get(pk=cluster_id)
    transport = Transport(kubeconfig or (lambda: read_kubeconfig(cluster_id)))
    gpu_models = GpuModel.objects.exclude(pk=CPU_MODEL_NAME).order_by("name")
    known = json.dumps({"models": list(gpu_models.values_list("spec", flat=True))})
    driver = create_driver(cluster.driver, cluster.driver_options, load_models(known))
    mark = get_installation_id()
    return ClusterConnection(
        transport,
        driver,
        mark,
        lambda: _registered_uid(cluster_id),
        lambda: _latest_version(cluster_id),
        ObservationCache(cluster_id, mark),
        lambda: _allowed_namespaces(cluster_id),
    )


def _registered_uid(cluster_id: str) -> str:
    return Cluster.objects.values_list("uid", flat=True).get(pk=cluster_id)


def _latest_version(cluster_id: str) -> int:
    return ClusterWatch.objects.filter(cluster=cluster_id).aggregate(last=Max("version"))["last"] or 0


def _allowed_namespaces(cluster_id: str) -> tuple[str, ...]:
    cluster = Cluster.objects.only("ingress", "bastion", "allowed_namespaces").get(pk=cluster_id)
    return resolve_allowed_namespaces(cluster.ingress, cluster.bastion, cluster.allowed_namespaces)


def read_kubeconfig(cluster_id: str) -> Mapping[str, Any]:
    """Return a cluster's kubeconfig; it is never cached and never logged."""
    stored = ClusterCredential.objects.filter(pk=cluster_id).first()
    if stored is None:
        raise ClusterUnreachable("this cluster has no credentials yet; an operator must add them")
    try:
        kubeconfig: Mapping[str, Any] = json.loads(crypto.decrypt(bytes(stored.sealed)))
    except crypto.CredentialKeyError as error:
        raise ClusterUnreachable(f"this cluster's credentials cannot be read: {error}") from error
    return kubeconfig
