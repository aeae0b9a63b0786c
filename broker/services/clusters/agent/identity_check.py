"""Check that a cluster is the registered one and not an older state of it.

A cluster that was replaced or restored is frozen; its agent ends, and starts anew once an operator has
unfroze it.
"""

from broker.models import Cluster, ClusterWatch
from broker.provisioners.kubernetes.agent.event_buffer import WatchEvent
from broker.provisioners.kubernetes.client import objects
from broker.provisioners.kubernetes.client.cluster_identity import identity_change, version_regression
from broker.provisioners.kubernetes.client.transport import KubernetesApi
from broker.provisioners.kubernetes.cluster_connection import ClusterConnection
from broker.services.clusters.health import cluster_freeze


class IdentityCheck:
    """The identity of one cluster, as its agent knows it."""

    def __init__(self, cluster: Cluster, connection: ClusterConnection) -> None:
        self.cluster, self.connection = cluster, connection
        self.frozen = False  # the cluster was replaced: the agent must be restarted
        self.suspicion = ""  # why the cluster must be frozen, set by the heartbeat's thread
        self.uid = connection.uid()
        self._latest_version = connection.reached()  # every later heartbeat must have a higher version
        self._watches: set[int] = set()

    @property
    def is_trusted(self) -> bool:
        return not self.suspicion and not self.frozen

    def is_foreign(self, api: KubernetesApi, answer: objects.ClusterObjectHeader | None) -> bool:
        """Return whether the cluster was replaced or restored from an older state.

        Asked by the heartbeat's thread before the first heartbeat, and of every answer to one.
        """
        if answer is None:
            why = identity_change(api, self.uid, 0)
        else:
            why = version_regression(int(answer.metadata.resource_version), self._latest_version)
            self._latest_version = max(self._latest_version, int(answer.metadata.resource_version))
        self.suspicion = self.suspicion or why
        return bool(why)

    def freeze_if_replaced(self) -> bool:
        """Freeze the cluster and return True if it is not the registered one.

        Raises ClusterUnreachable or ApiRefusal if it does not say.
        """
        if self.uid and (why := identity_change(self.connection.transport.within(), self.uid, 0)):
            self.freeze(why)
            return True
        return False

    def freeze_if_older(self, event: WatchEvent) -> bool:
        """Freeze the cluster and return True if a list is older than what was observed."""
        if event.how not in ("PAGED", "LISTED"):
            return False
        if why := version_regression(event.version, self._reached(event)):
            self.freeze(why)
            return True
        return False

    def refresh(self) -> None:
        """Read again what others may have changed, and freeze a suspicious cluster."""
        self.uid = self.connection.uid()
        if self.suspicion:
            self.freeze(self.suspicion)
        self.frozen = self.frozen or cluster_freeze.is_frozen(self.cluster.pk) or self._is_forgotten()

    def freeze(self, why: str) -> None:
        cluster_freeze.freeze_cluster(self.cluster.pk, why)
        self.frozen = True

    def _reached(self, event: WatchEvent) -> int:
        watch = ClusterWatch.objects.filter(cluster=self.cluster, kind=event.kind.name).first()
        return watch.version if watch else 0

    def _is_forgotten(self) -> bool:
        """Return whether watch rows were deleted: the cluster was frozen and unfrozen since."""
        before = self._watches
        self._watches = set(ClusterWatch.objects.filter(cluster=self.cluster).values_list("pk", flat=True))
        return not before <= self._watches
