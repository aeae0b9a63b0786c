"""Whether a cluster answers, and whether it is the one that joined, in no older state: nothing is placed where not."""

from datetime import datetime

import structlog
from django.db.models import F, Max

from broker.models import Cluster, ClusterWatch, our_mark
from broker.provisioners.base import Unanswered
from broker.provisioners.kubernetes.cluster import kubeconfig_of
from broker.provisioners.kubernetes.identity import older
from broker.provisioners.kubernetes.kinds import NAMESPACE
from broker.provisioners.kubernetes.memory import Memory
from broker.provisioners.kubernetes.objects import Thing, read
from broker.provisioners.kubernetes.refusals import Refusal
from broker.provisioners.kubernetes.transport import Transport
from broker.services import freezing

log = structlog.get_logger(__name__)
PATIENCE_S = 5.0
LONGEST = 200


def clusters_to_knock_at() -> list[str]:
    """Return the clusters that could fall silent."""
    return list(Cluster.objects.filter(provisioner="kubernetes").order_by("id").values_list("id", flat=True))


def knock(cluster_id: str, *, now: datetime) -> None:
    """Ask a cluster who it is, and write down when it fell silent or came back."""
    cluster = Cluster.objects.get(pk=cluster_id)
    if cluster.uid and not cluster.silent_since and Memory(cluster.pk, our_mark()).fresh_at(now):
        return  # its agent has just heard from it, and minds who answers
    watches = ClusterWatch.objects.filter(cluster=cluster)
    reached = (
        watches.aggregate(last=Max("version"))["last"] or 0
    )  # before it is asked: its answer must be later
    try:
        uid, version = _who(cluster)
    except (Unanswered, Refusal) as error:
        _silent(cluster, str(error), now)
        return
    if cluster.uid and uid != cluster.uid:
        # Whatever it says about our leases it says about others of their names.
        why = f"another cluster answers in its place: {uid[:8]}, not {cluster.uid[:8]}"
        _silent(cluster, why, now)
        freezing.freeze(cluster.pk, why)
    elif why := older(version, reached):
        # Watches that ask for what is yet to come in an older state only fall silent: somebody must ask.
        _silent(cluster, why, now)
        freezing.freeze(cluster.pk, why)
    elif cluster.silent_since or not cluster.uid:
        changed = {"uid": uid, "silent_since": None, "silent_why": "", "version": F("version") + 1}
        Cluster.objects.filter(pk=cluster.pk).update(**changed)
        log.info("a cluster answers", cluster=cluster.name)


def _who(cluster: Cluster) -> tuple[str, int]:
    """Return what every cluster has one of, and the version it is at."""
    api = Transport(lambda: kubeconfig_of(cluster.pk)).within(PATIENCE_S)
    items, version = api.list_all(NAMESPACE, fields="metadata.name=kube-system", metadata_only=True)
    return read(items[0], Thing).metadata.uid if items else "", int(version)


def _silent(cluster: Cluster, why: str, now: datetime) -> None:
    answering = Cluster.objects.filter(pk=cluster.pk, silent_since=None)
    if answering.update(silent_since=now, silent_why=why[:LONGEST], version=F("version") + 1):
        log.error("a cluster is silent", cluster=cluster.name, why=why)
