"""Decide when an inventory update is due, from the objects the watch has stored."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

import structlog
from django.db.models import TextField
from django.db.models.functions import Cast

from broker.models import Cluster, ClusterObject, ClusterWatch, Gpu
from broker.provisioners.kubernetes.agent.event_buffer import WatchEvent
from broker.provisioners.kubernetes.agent.foreign_usage import ForeignUsage
from broker.provisioners.kubernetes.client import objects
from broker.provisioners.kubernetes.client.kinds import NODE, RESOURCE_SLICE, Kind
from broker.provisioners.kubernetes.client.objects import T, decode
from broker.provisioners.kubernetes.cluster_connection import ClusterConnection
from broker.provisioners.kubernetes.drivers.cpu import offer_remaining_cpus
from broker.provisioners.kubernetes.drivers.discovered_inventory import NO_FOREIGN_USAGE, DiscoveredNode
from broker.provisioners.kubernetes.drivers.node_resources import node_resources, resources_left
from broker.provisioners.kubernetes.observe.node_refusal import node_refusal
from broker.provisioners.kubernetes.tolerations import parse_tolerations
from broker.services.clusters.agent.watched_kinds import DEVICE_CLASSES
from broker.services.clusters.registration import cluster_registration
from broker.services.inventory.device_losses import EXAMINED_REASONS
from ports import clock

log = structlog.get_logger(__name__)
INVENTORY_S, INVENTORY_DELAY_S = 60.0, 1.0
UNCHANGED_INVENTORY_S = 300.0  # for an unchanged inventory
EXAMINED_S = 10.0  # while leases are examined: what their pods report is known soon


class InventoryWatch:
    """The inventory of one cluster, as its agent last took it."""

    def __init__(
        self, cluster: Cluster, connection: ClusterConnection, watched: Iterable[Kind], foreign: ForeignUsage
    ) -> None:
        self.cluster, self.connection, self._foreign = cluster, connection, foreign
        self.due_at = self._taken_at = 0.0
        self._unlisted = {NODE, RESOURCE_SLICE} & set(watched)  # kinds that inventory needs and that are not listed yet
        self._digest, self._repeat_at = 0, 0.0  # of the last inventory

    def finish_list(self, kind: Kind) -> None:
        """Record that a kind was listed completely."""
        self._unlisted -= {kind}
        if kind in (NODE, RESOURCE_SLICE, DEVICE_CLASSES):
            self.schedule()

    def see(self, event: WatchEvent) -> None:
        """Schedule an update if an event changes what nodes publish."""
        if event.kind in (RESOURCE_SLICE, DEVICE_CLASSES) and event.items:
            self.schedule()

    def schedule(self, delay_s: float = 0.0) -> None:
        """Schedule one update, shortly after the last one or after a delay."""
        self.due_at = min(self.due_at, self._taken_at + max(INVENTORY_DELAY_S, delay_s))

    def is_due(self, moment: float) -> bool:
        """Return whether an update is due; the next one is due after the usual interval."""
        if moment < self.due_at:
            return False
        self.due_at = moment + INVENTORY_S
        return True

    def take(self, *, now: datetime) -> None:
        """Update the inventory from the nodes as the watch has shown them."""
        if self._unlisted or not self._foreign.is_complete:
            return  # once they are listed, an update is due at once
        self._taken_at = clock.monotonic()
        nodes, slices = self._rows(NODE, objects.ClusterNode), self._rows(RESOURCE_SLICE, objects.ResourceSlice)
        tolerations = parse_tolerations(Cluster.objects.values_list("tolerations", flat=True).get(pk=self.cluster.pk))
        foreign = self._foreign.by_node()
        known = {node.metadata.name: node for node in nodes}
        found = [
            offer_remaining_cpus(
                replace(
                    each,
                    refusal=node_refusal(node, tolerations) or each.refusal,
                    resources=node_resources(node, usage := foreign.get(each.name, NO_FOREIGN_USAGE)),
                    resources_left=resources_left(node, usage),
                    foreign=usage,
                )
            )
            if (node := known.get(each.name))
            else each
            for each in self.connection.driver.inventory(nodes, slices, self._class_names())
        ]
        if self._was_taken(found):
            return
        for problem in cluster_registration.update_inventory(self.cluster, found, now=now):
            log.warning("node not sold", cluster=self.cluster.name, why=problem)
        if self._examines_leases():
            self.schedule(EXAMINED_S)

    def _rows(self, kind: Kind, reads: type[T]) -> list[T]:
        """Return stored objects of a kind.

        Read from JSON text, because a dict of each would take several times the memory.
        """
        rows = ClusterObject.objects.filter(cluster=self.cluster, kind=kind.name).order_by("name")
        texts = rows.annotate(text=Cast("body", TextField())).values_list("text", flat=True)
        return [decode(text.encode(), reads) for text in texts]

    def _class_names(self) -> set[str] | None:
        """Return the cluster's DeviceClass names; None if they were never listed.

        An older role of ours may not be allowed to list them.
        """
        rows = ClusterObject.objects.filter(cluster=self.cluster, kind=DEVICE_CLASSES.name)
        known = ClusterWatch.objects.filter(cluster=self.cluster, kind=DEVICE_CLASSES.name).exists()
        return set(rows.values_list("name", flat=True)) if known else None

    def _examines_leases(self) -> bool:
        """Return whether it is unknown which leases have lost their devices."""
        return Gpu.objects.filter(node__cluster=self.cluster, health_reason__in=EXAMINED_REASONS).exists()

    def _was_taken(self, found: list[DiscoveredNode]) -> bool:
        """Return whether the same inventory was processed lately and nothing is pending.

        Processing one reads every GPU of the cluster.
        """
        digest = hash(repr(found))
        moment = clock.monotonic()
        waits = (
            Cluster.objects.filter(pk=self.cluster.pk)
            .exclude(inventory_paused_reason="", accept_next_inventory=False)
            .exists()
            or Gpu.objects.filter(node__cluster=self.cluster).exclude(out_of_service_since=None).exists()
            or self._examines_leases()
        )
        if digest == self._digest and moment < self._repeat_at and not waits:
            return True
        self._digest, self._repeat_at = digest, moment + UNCHANGED_INVENTORY_S
        return False
