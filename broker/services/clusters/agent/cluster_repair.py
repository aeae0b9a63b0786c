"""Repair of drifted objects in one cluster: its queue, and the thread that applies them."""

from broker.models import Cluster
from broker.provisioners.kubernetes.agent.drift_repair import DriftRepairer
from broker.provisioners.kubernetes.cluster_connection import ClusterConnection
from broker.services.clusters.drift_repair_queue import DriftRepairQueue


class ClusterRepair:
    """The objects that the agent of one cluster applies again, and who applies them."""

    def __init__(self, cluster: Cluster, connection: ClusterConnection) -> None:
        self._cluster_id = cluster.pk
        self.repairer = DriftRepairer(connection.transport)
        self.queue = DriftRepairQueue(cluster.pk, connection)
        self._ingress_settings = self._read_ingress_settings()

    def refresh(self) -> None:
        """Repair everything sooner once if the ingress settings changed."""
        if self._ingress_settings != (current := self._read_ingress_settings()):
            self._ingress_settings = current
            self.queue.hurry()

    def repair_next(self) -> None:
        """Give the repair thread its next objects, if it has none."""
        if self.repairer.is_idle:
            self.repairer.enqueue(self.queue.load_next(), every_s=self.queue.every_s)

    def _read_ingress_settings(self) -> tuple[str, ...] | None:
        rows = Cluster.objects.filter(pk=self._cluster_id)
        return rows.values_list("domain", "ingress", "bastion", "allowed_namespaces").first()
