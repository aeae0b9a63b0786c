"""Whether a cluster answers, and whether it is still the one that joined; nothing new is placed where neither is so."""

from datetime import datetime

import structlog
from django.db.models import F

from broker.models import Cluster
from broker.provisioners.base import Unanswered
from broker.provisioners.kubernetes.cluster import kubeconfig_of
from broker.provisioners.kubernetes.kinds import NAMESPACE, Ref
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
    try:
        uid = _who(cluster)
    except (Unanswered, Refusal) as error:
        _silent(cluster, str(error), now)
        return
    if cluster.uid and uid != cluster.uid:
        # Whatever it says about our leases it says about others of their names.
        why = f"another cluster answers in its place: {uid[:8]}, not {cluster.uid[:8]}"
        _silent(cluster, why, now)
        freezing.freeze(cluster.pk, why)
    elif cluster.silent_since or not cluster.uid:
        changed = {"uid": uid, "silent_since": None, "silent_why": "", "version": F("version") + 1}
        Cluster.objects.filter(pk=cluster.pk).update(**changed)
        log.info("a cluster answers", cluster=cluster.name)


def _who(cluster: Cluster) -> str:
    transport = Transport(lambda: kubeconfig_of(cluster.pk))
    body = transport.within(PATIENCE_S).get(Ref(NAMESPACE, "kube-system"))
    return read(body, Thing).metadata.uid if body else ""


def _silent(cluster: Cluster, why: str, now: datetime) -> None:
    answering = Cluster.objects.filter(pk=cluster.pk, silent_since=None)
    if answering.update(silent_since=now, silent_why=why[:LONGEST], version=F("version") + 1):
        log.error("a cluster is silent", cluster=cluster.name, why=why)
