"""Cluster health probe: whether a cluster answers, and is still the same cluster.

Nothing is placed in a cluster that does not answer, was replaced, or is in an older state.
"""

from datetime import datetime

import structlog
from django.db.models import F, Max

from broker.models import Cluster, ClusterWatch, get_installation_id
from broker.provisioners.base import ClusterUnreachable
from broker.provisioners.kubernetes.client.api_errors import ApiRefusal
from broker.provisioners.kubernetes.client.cluster_identity import version_regression
from broker.provisioners.kubernetes.client.kinds import NAMESPACE
from broker.provisioners.kubernetes.client.objects import ClusterObjectHeader, decode
from broker.provisioners.kubernetes.client.transport import Transport
from broker.provisioners.kubernetes.cluster_connection import read_kubeconfig
from broker.provisioners.kubernetes.observe.observation_cache import ObservationCache
from broker.services.clusters.health import cluster_freeze

log = structlog.get_logger(__name__)
TIMEOUT_S = 5.0
MAX_REASON_LENGTH = 200


def clusters_to_probe() -> list[str]:
    """Return the clusters to probe."""
    return list(Cluster.objects.filter(provisioner="kubernetes").order_by("id").values_list("id", flat=True))


def probe_cluster(cluster_id: str, *, now: datetime) -> None:
    """Probe a cluster and record when it became unreachable or came back."""
    cluster = Cluster.objects.get(pk=cluster_id)
    if (
        cluster.uid
        and not cluster.unreachable_since
        and ObservationCache(cluster.pk, get_installation_id()).fresh_at(now)
    ):
        return  # its agent has just heard from it, and checks its identity
    watches = ClusterWatch.objects.filter(cluster=cluster)
    # Read before the request: the answer's version must be later.
    reached = watches.aggregate(last=Max("version"))["last"] or 0
    try:
        uid, version = _ask_identity(cluster)
    except (ClusterUnreachable, ApiRefusal) as error:
        _mark_unreachable(cluster, str(error), now)
        return
    if cluster.uid and uid != cluster.uid:
        # Whatever it says about our leases is about other objects of the same names.
        why = f"another cluster responds at this address: {uid[:8]}, not {cluster.uid[:8]}"
        _mark_unreachable(cluster, why, now)
        cluster_freeze.freeze_cluster(cluster.pk, why)
    elif why := version_regression(version, reached):
        # Watches from a version in the future just stay silent in an older state, so it has to be asked.
        _mark_unreachable(cluster, why, now)
        cluster_freeze.freeze_cluster(cluster.pk, why)
    elif cluster.unreachable_since or not cluster.uid:
        changed = {"uid": uid, "unreachable_since": None, "unreachable_reason": "", "version": F("version") + 1}
        Cluster.objects.filter(pk=cluster.pk).update(**changed)
        log.info("cluster reachable again", cluster=cluster.name)


def _ask_identity(cluster: Cluster) -> tuple[str, int]:
    """Return the uid of the kube-system namespace and the current resource version."""
    api = Transport(lambda: read_kubeconfig(cluster.pk)).within(TIMEOUT_S)
    items, version = api.list_all(NAMESPACE, fields="metadata.name=kube-system", metadata_only=True)
    return decode(items[0], ClusterObjectHeader).metadata.uid if items else "", int(version)


def _mark_unreachable(cluster: Cluster, why: str, now: datetime) -> None:
    answering = Cluster.objects.filter(pk=cluster.pk, unreachable_since=None)
    if answering.update(unreachable_since=now, unreachable_reason=why[:MAX_REASON_LENGTH], version=F("version") + 1):
        log.error("cluster unreachable", cluster=cluster.name, why=why)
