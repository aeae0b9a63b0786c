"""The agent of one cluster: watches its objects and updates rows and inventory."""

from collections.abc import Callable, Iterable
from datetime import datetime
from threading import Thread

import structlog

from broker.models import Cluster
from broker.provisioners.base import ClusterUnreachable
from broker.provisioners.kubernetes.agent.agent_heartbeat import AgentHeartbeat, heartbeat_ref
from broker.provisioners.kubernetes.agent.event_buffer import EventBuffer, WatchEvent
from broker.provisioners.kubernetes.agent.foreign_usage import ForeignUsage
from broker.provisioners.kubernetes.client import api_errors, objects
from broker.provisioners.kubernetes.client.kinds import POD, RESOURCE_CLAIM
from broker.provisioners.kubernetes.client.objects import decode
from broker.provisioners.kubernetes.client.reflector import Reflector
from broker.provisioners.kubernetes.cluster_connection import ClusterConnection, connect_to_cluster, read_kubeconfig
from broker.services.clusters.agent.cluster_repair import ClusterRepair
from broker.services.clusters.agent.identity_check import IdentityCheck
from broker.services.clusters.agent.inventory_watch import InventoryWatch
from broker.services.clusters.agent.node_watch import NodeWatch
from broker.services.clusters.agent.object_watch import ObjectWatch, PendingRows
from broker.services.clusters.agent.watched_kinds import QUOTAS, WATCHED_KINDS, kinds_to_watch
from broker.services.clusters.observed.observed_quotas import ObservedQuotas
from ports import clock

log = structlog.get_logger(__name__)
FOREIGN_DELAY_S = 5.0  # pods of others change often, and an inventory reads every GPU
CHECK_S = 5.0  # between two checks of what others may have changed


class WatchEnded(Exception):
    """Raised when a watch thread ended, so that the agent restarts instead of missing events."""


class ClusterAgent:
    """The agent process of one cluster.

    Reflectors run in threads of their own; only the main thread writes to the database.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self._kubeconfig = cluster, read_kubeconfig(cluster.pk)
        # The reflectors' threads may reconnect at any time, and must not use the database.
        self.connection: ClusterConnection = connect_to_cluster(cluster.pk, lambda: self._kubeconfig)
        transport, watched = self.connection.transport, kinds_to_watch(self.connection.driver)
        types = {kind: reads for kind, (_, reads) in watched.items()}
        self.events = EventBuffer(types)
        self.reflectors = [
            Reflector(transport, kind, self.events, labels=marks) for kind, (marks, _) in watched.items()
        ]
        claims = self.connection.driver.uses_resource_claims
        self.foreign = ForeignUsage(self.connection.installation)
        self.foreign_reflectors = [
            Reflector(transport, kind, self.foreign, labels=self.foreign.selector)
            for kind in ((POD, RESOURCE_CLAIM) if claims else (POD,))
        ]
        self.identity = IdentityCheck(cluster, self.connection)
        self.heartbeat = AgentHeartbeat(
            transport,
            heartbeat_ref(cluster.pk),
            self.connection.installation,
            well=self.sees_all,
            is_foreign=self.identity.is_foreign,
        )
        self.objects = ObjectWatch(cluster, self.connection, types)
        self.inventory = InventoryWatch(cluster, self.connection, watched, self.foreign)
        self.nodes = NodeWatch(cluster, on_change=self.inventory.schedule)
        self.repair = ClusterRepair(cluster, self.connection)
        self.quotas = ObservedQuotas(cluster.pk, self.connection, self.repair.queue)
        self._check_at = 0.0
        self._over = False

    @property
    def frozen(self) -> bool:
        """Whether the cluster was frozen: the agent must be restarted."""
        return self.identity.frozen

    def follow(self, going: Callable[[], bool], alive: Callable[[], None] = lambda: None) -> None:
        """Run until told to stop or until the cluster is frozen.

        Calls `alive` after every iteration, as a heartbeat.
        """

        def reflecting() -> bool:
            return going() and not self.frozen and not self._over

        threads = self.start(reflecting)
        try:
            while reflecting():
                self.run_turn()
                alive()
                ended = any(not thread.is_alive() for thread in threads)
                if ended and reflecting():
                    raise WatchEnded("a watch ended with an unexpected error, logged above. Start the agent again.")
        finally:
            self._over = True  # for any reason: nobody would process what the threads still find

    def start(self, going: Callable[[], bool]) -> list[Thread]:
        """Start reflectors, heartbeat and repair in threads that never use the database."""
        self.foreign.expect(each.kind for each in self.foreign_reflectors)
        following = [each.follow for each in (*self.reflectors, *self.foreign_reflectors)]
        following += [self.heartbeat.follow, self.repair.repairer.follow]
        threads = [Thread(target=each, args=(going,), daemon=True) for each in following]
        for thread in threads:
            thread.start()
        return threads

    def run_turn(self, patience_s: float = 1.0) -> None:
        """Process new observations and run periodic work that is due."""
        self.absorb(self.events.batch(patience_s), now=clock.now())
        moment = clock.monotonic()
        if moment >= self._check_at:
            self._check_at = moment + CHECK_S
            self._check_changes()
        self._repair_next()
        if self.foreign.take_change():
            self.inventory.schedule(FOREIGN_DELAY_S)
        if self.inventory.is_due(moment):
            self.take_inventory(now=clock.now())

    def _check_changes(self) -> None:
        """Read again what others may have changed in our rows."""
        self._kubeconfig = read_kubeconfig(self.cluster.pk)
        self.identity.refresh()
        self.nodes.check_lost(now=clock.now())
        self.repair.refresh()
        if self.sees_all():
            self.objects.retry_placements()

    def _repair_next(self) -> None:
        """Let the next objects be repaired, if the cluster is known and healthy."""
        if self.heartbeat.beats and self.sees_all() and self.identity.is_trusted:
            self.repair.repair_next()

    def absorb(self, batch: Iterable[WatchEvent], *, now: datetime) -> None:
        """Store observations in order; changes between two lists are written at once.

        Nothing that is pending is stored once the cluster is frozen.
        """
        pending = PendingRows()
        for event in batch:
            if self.frozen or self.identity.freeze_if_older(event):
                return
            if event.how == "BEGUN":
                self.objects.begin_list(event.kind)
            else:
                self._absorb_event(event, pending, now)
        self.objects.store(pending, now=now)
        self.objects.settle_placements(now=now)

    def _absorb_event(self, event: WatchEvent, pending: PendingRows, now: datetime) -> None:
        fresh = self.objects.see(event, pending)
        if event.how == "LISTED":
            there = self.objects.finish_list(event.kind, pending, now=now)
            if event.kind is QUOTAS:
                self.quotas.listed(there, now=now)
            self.objects.prune(event, there, now=now)
            self.inventory.finish_list(event.kind)
        self.nodes.see(event, now=now)
        self.inventory.see(event)
        if event.kind is QUOTAS:
            for item in fresh:
                self.quotas.see(decode(item, objects.ObservedQuota), gone=event.how == "DELETED", now=now)

    def sees_all(self) -> bool:
        """Return whether all watches that leases depend on are open.

        The watches of the inventory are not counted.
        """
        return all(each.is_open for each in self.reflectors if each.kind in WATCHED_KINDS)

    def take_inventory(self, *, now: datetime) -> None:
        """Update the inventory, unless another cluster answers in this one's place."""
        try:
            # Once there is a heartbeat, its answers tell who the cluster is.
            if self.heartbeat.beats == 0 and self.identity.freeze_if_replaced():
                return
        except (ClusterUnreachable, api_errors.ApiRefusal) as error:
            log.warning("inventory not accepted", cluster=self.cluster.name, why=str(error))
            return
        self.inventory.take(now=now)
