"""`manage.py kube_agent [cluster]`: run the agent of one or all Kubernetes clusters.

A second agent of a cluster waits until the first is gone.
"""

import gc
import signal
from contextlib import closing
from threading import Thread
from typing import Any

import structlog
from django.core.management.base import BaseCommand, CommandParser
from django.db import InterfaceError, OperationalError, connection

from broker.management.cluster_lookup import find_cluster
from broker.models import Cluster
from broker.provisioners.base import ClusterUnreachable
from broker.services.clusters.agent.cluster_agent import ClusterAgent
from broker.services.clusters.agent.leadership import try_become_leader
from broker.services.clusters.health import cluster_freeze
from broker.services.inventory import gpu_catalogue
from ports import clock
from ports.heartbeat import HeartbeatFile

log = structlog.get_logger(__name__)
RETRY_INTERVAL_S = 2.0


class Command(BaseCommand):
    help = "Run the agent of one Kubernetes cluster, or of all of them, until SIGTERM or Ctrl-C."
    requires_system_checks = ()  # they load every page of the portal, which an agent never shows
    running = True

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("cluster", nargs="?", default="", help="name or ID of a cluster; default: all clusters")

    def handle(self, *args: Any, **options: Any) -> None:
        cluster = find_cluster(options["cluster"]) if options["cluster"] else None
        gc.collect()
        gc.freeze()  # imported objects stay forever: exclude them from garbage collection
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)
        if cluster:
            self.follow(cluster)
        else:
            self.follow_all()

    def follow_all(self) -> None:
        """Run one thread per Kubernetes cluster; start threads for new clusters and restart dead ones."""
        threads: dict[str, Thread] = {}
        while self.running:
            for cluster in self._kubernetes_clusters():
                if cluster.pk not in threads or not threads[cluster.pk].is_alive():
                    threads[cluster.pk] = Thread(target=self.follow, args=(cluster,), daemon=True)
                    threads[cluster.pk].start()
            clock.sleep(RETRY_INTERVAL_S)

    def follow(self, cluster: Cluster) -> None:
        """Follow one cluster until stopped; wait while it is unreachable, frozen or taken."""
        heartbeat = HeartbeatFile("agent")
        with closing(connection):  # whatever ends it: else the advisory lock stays with a dead thread's connection
            while self.running:
                heartbeat()
                try:
                    self._follow(cluster, heartbeat)
                except (OperationalError, InterfaceError, ClusterUnreachable) as error:
                    log.warning("agent waiting", cluster=cluster.name, because=str(error).strip())
                    connection.close()  # this also releases the advisory lock
                if self.running:
                    clock.sleep(RETRY_INTERVAL_S)

    def _follow(self, cluster: Cluster, heartbeat: HeartbeatFile) -> None:
        if not cluster_freeze.is_frozen(cluster.pk) and try_become_leader(cluster):
            log.info("following", cluster=cluster.name)
            gpu_catalogue.load_gpu_models()  # a GPU of a newly configured model may have appeared
            ClusterAgent(cluster).follow(lambda: self.running, heartbeat)

    def _kubernetes_clusters(self) -> list[Cluster]:
        try:
            return list(Cluster.objects.filter(provisioner="kubernetes").order_by("id"))
        except (OperationalError, InterfaceError) as error:
            log.warning("agent waiting", because=str(error).strip())
            connection.close()
            return []

    def _stop(self, *_: Any) -> None:
        self.running = False
