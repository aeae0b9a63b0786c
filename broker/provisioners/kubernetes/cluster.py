"""One cluster as its row describes it: the way in, and the driver that hands out its slices."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Max

from broker.domain.gpu_models import load_models
from broker.models import Cluster, ClusterCredential, ClusterWatch, GpuModel, our_mark
from broker.provisioners.base import Unanswered
from broker.provisioners.kubernetes.drivers.base import SliceDriver
from broker.provisioners.kubernetes.drivers.choosing import driver_named
from broker.provisioners.kubernetes.entrances import entrances
from broker.provisioners.kubernetes.memory import Memory
from broker.provisioners.kubernetes.transport import Transport
from ports import seal


@dataclass(frozen=True)
class Way:
    """How to reach a cluster and how to ask it for slices."""

    transport: Transport
    driver: SliceDriver
    installation: str = ""  # ours: what carries another's mark is left alone
    uid: Callable[[], str] = str  # of the cluster that joined; empty where nobody has asked it yet
    reached: Callable[[], int] = int  # the latest of its versions that we have seen
    memory: Memory | None = None  # what its agent wrote down
    entrances: Callable[[], tuple[str, ...]] = tuple  # the namespaces from which people come in


def way_into(cluster_id: str, kubeconfig: Callable[[], Mapping[str, Any]] | None = None) -> Way:
    """Make the way into a cluster; its credentials are read whenever it connects, so new ones are found."""
    cluster = Cluster.objects.get(pk=cluster_id)
    transport = Transport(kubeconfig or (lambda: kubeconfig_of(cluster_id)))
    known = json.dumps({"models": list(GpuModel.objects.order_by("name").values_list("spec", flat=True))})
    driver = driver_named(cluster.driver, cluster.driver_options, load_models(known))
    mark = our_mark()
    return Way(
        transport,
        driver,
        mark,
        lambda: _uid_of(cluster_id),
        lambda: _reached(cluster_id),
        Memory(cluster_id, mark),
        lambda: _entrances(cluster_id),
    )


def _uid_of(cluster_id: str) -> str:
    return Cluster.objects.values_list("uid", flat=True).get(pk=cluster_id)


def _reached(cluster_id: str) -> int:
    return ClusterWatch.objects.filter(cluster=cluster_id).aggregate(last=Max("version"))["last"] or 0


def _entrances(cluster_id: str) -> tuple[str, ...]:
    cluster = Cluster.objects.only("door", "bastion", "entrances").get(pk=cluster_id)
    return entrances(cluster.door, cluster.bastion, cluster.entrances)


def kubeconfig_of(cluster_id: str) -> Mapping[str, Any]:
    """Return a cluster's kubeconfig; it is never kept, and never put into words."""
    kept = ClusterCredential.objects.filter(pk=cluster_id).first()
    if kept is None:
        raise Unanswered("this cluster has no credentials yet; an operator must register them")
    try:
        kubeconfig: Mapping[str, Any] = json.loads(seal.opened(bytes(kept.sealed)))
    except seal.Unsealable as error:
        raise Unanswered(f"this cluster's credentials cannot be read: {error}") from error
    return kubeconfig
