"""Store the objects an agent watches; find new and missing ones."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from itertools import compress

import msgspec

from broker.models import Cluster
from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.agent.agent_heartbeat import LATE_S, heartbeat_age_s, heartbeat_ref
from broker.provisioners.kubernetes.agent.event_buffer import WatchEvent
from broker.provisioners.kubernetes.client import objects
from broker.provisioners.kubernetes.client.kinds import RESOURCE_CLAIM, RESOURCE_SLICE, Kind
from broker.provisioners.kubernetes.client.objects import decode
from broker.provisioners.kubernetes.cluster_connection import ClusterConnection
from broker.provisioners.kubernetes.observe.object_lookup import spec_name_of
from broker.services.clusters.agent.watched_kinds import ObjectType
from broker.services.clusters.observed import observed_objects
from broker.services.clusters.observed.observed_claims import ObservedClaims
from broker.services.clusters.observed.observed_objects import ObservedObject

ObjectKey = tuple[str, str]  # namespace, name


@dataclass
class PendingRows:
    """Observations of one batch of events that are not stored yet."""

    rows: list[ObservedObject] = field(default_factory=list)
    reached: dict[str, int] = field(default_factory=dict)  # kind -> version of its watch


class ObjectWatch:
    """The watched objects of one cluster, as its agent has stored them."""

    def __init__(self, cluster: Cluster, connection: ClusterConnection, types: dict[Kind, ObjectType]) -> None:
        self.cluster, self.connection, self._types = cluster, connection, types
        self._claims = ObservedClaims(cluster.pk, connection)
        self._heartbeat_name = heartbeat_ref(cluster.pk).name
        self._listing: dict[Kind, set[ObjectKey]] = {}  # objects on the pages of a list so far
        self._stored: dict[Kind, dict[ObjectKey, int]] = {kind: {} for kind in types}  # digest of each stored row

    def begin_list(self, kind: Kind) -> None:
        self._listing[kind] = set()

    def see(self, event: WatchEvent, pending: PendingRows) -> Iterable[objects.Raw]:
        """Add what an event shows to the pending rows; return the items that are new."""
        observed = [self._to_row(event.kind, item, how=event.how) for item in event.items]
        fresh = [row is not None and self._is_new(event.kind, row) for row in observed]
        pending.rows += [row for row, is_fresh in zip(observed, fresh, strict=True) if row and is_fresh]
        if event.how == "PAGED":
            self._listing[event.kind] |= {(row.namespace, row.name) for row in observed if row}
        elif event.how != "LISTED":
            pending.reached[event.kind.name] = event.version
        return compress(event.items, fresh)

    def finish_list(self, kind: Kind, pending: PendingRows, *, now: datetime) -> set[ObjectKey]:
        """Store what is pending; return the keys of all objects in the list."""
        observed_objects.record_observed(self.cluster, pending.rows, now=now)
        pending.rows = []
        there, known = self._listing.pop(kind), self._stored[kind]
        self._stored[kind] = {place: known[place] for place in there}
        return there

    def prune(self, event: WatchEvent, there: set[ObjectKey], *, now: datetime) -> None:
        """Delete stored objects that are missing from a complete list."""
        observed_objects.prune_missing(self.cluster, event.kind.name, there, version=event.version, now=now)

    def store(self, pending: PendingRows, *, now: datetime) -> None:
        observed_objects.record_observed(self.cluster, pending.rows, now=now, reached=pending.reached)

    def settle_placements(self, *, now: datetime) -> None:
        """Let placements follow the devices of stored claims, unless a list of them is incomplete."""
        if self._listing.keys().isdisjoint((RESOURCE_CLAIM, RESOURCE_SLICE)):
            self._claims.settle_placements(now=now)

    def retry_placements(self) -> None:
        """Try placements again that could not follow the devices of claims."""
        self._claims.retry_later()

    def _to_row(self, kind: Kind, item: objects.Raw, *, how: str) -> ObservedObject | None:
        """Convert an observed object to a row; return None for an outdated heartbeat."""
        thing = decode(item, self._types[kind])
        meta, marks = thing.metadata, thing.metadata.labels
        age_s = 0.0
        if meta.name == self._heartbeat_name and isinstance(thing, objects.ClusterObjectHeader):
            age_s = heartbeat_age_s(thing)
        if age_s > LATE_S:
            return None
        # The version is stored apart from the body: a body that differs only in its version need not be written.
        version, meta.resource_version = int(meta.resource_version), ""
        # Else another installation's, watched because of its node.
        ours = labels.labels_match(marks, {labels.INSTALLATION: self.connection.installation})
        spec_name = spec_name_of(thing) if ours else ""
        notify = ours and (not isinstance(thing, objects.ResourceClaim) or self._claims.see(thing, spec_name, how=how))
        return ObservedObject(
            kind=kind.name,
            namespace=meta.namespace,
            name=meta.name,
            uid=meta.uid,
            version=version,
            lease_id=marks.get(labels.LEASE, "") if notify else "",
            tenant_id=marks.get(labels.TENANT, "") if notify else "",
            spec_name=spec_name,
            body=None if how == "DELETED" else objects.Raw(msgspec.json.encode(thing)),
            age_s=age_s,
        )

    def _is_new(self, kind: Kind, observed: ObservedObject) -> bool:
        """Return whether a row must be written: many changes touch nothing we read.

        The digest is stored before the row is written. If writing fails, the agent restarts with no digests.
        """
        known, place = self._stored[kind], (observed.namespace, observed.name)
        if observed.body is None:
            known.pop(place, None)
            return True
        digest = hash(msgspec.json.encode(observed.body))
        return known.get(place) != digest and known.update({place: digest}) is None
