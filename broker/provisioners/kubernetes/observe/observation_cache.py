"""Cached observations of a cluster's agent, used while the agent is alive.

The agent writes a heartbeat into the cluster every few seconds and receives it by its own watch. If
that row is recent, the cluster answered, it is the one that was registered, and all other rows are as
recent.

A missing row proves nothing: only the cluster itself may say that something is gone.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q

from broker.models import ClusterObject
from broker.provisioners.base import spec_name
from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.agent.agent_heartbeat import heartbeat_ref
from broker.provisioners.kubernetes.client.kinds import CONFIG_MAP, NODE, POD, RESOURCE_CLAIM
from broker.provisioners.kubernetes.client.objects import (
    ClusterNode,
    ClusterObjectHeader,
    ObservedPod,
    ResourceClaim,
    decode,
)
from broker.provisioners.kubernetes.observe.node_health import find_lost_node
from broker.provisioners.kubernetes.observe.object_lookup import LeaseObjects, anchor_ref, belongs_to_lease
from broker.provisioners.kubernetes.render.spec import LeaseSpec
from ports.postgres.sql_statements import fetch_rows, load_sql

FRESH_FOR = timedelta(seconds=20)  # four heartbeats
# A server sends at least a bookmark on a watch every minute. A watch that is silent for longer has
# stalled or lags, and proves nothing after its last event, whatever the heartbeat's watch delivers.
WATCH_SILENT_AFTER = timedelta(seconds=70)
WATCH = ""  # pseudo kind: until when a kind was followed


@dataclass(frozen=True)
class CachedObservation:
    """One lease generation as last observed, and when that was last known true."""

    at: datetime
    objects: LeaseObjects
    well: bool  # its nodes exist and send heartbeats
    claims: tuple[ResourceClaim, ...] | None = None  # None if claims are not followed


class ObservationCache:
    """Reads the rows that one cluster's agent wrote."""

    def __init__(self, cluster_id: str, installation: str) -> None:
        self._cluster = cluster_id
        self._rows = ClusterObject.objects.filter(cluster=cluster_id)
        self._installation = installation
        ref = heartbeat_ref(cluster_id)
        self._pulse = Q(kind=CONFIG_MAP.name, namespace=ref.namespace, name=ref.name)

    def fresh_at(self, now: datetime) -> datetime | None:
        """Return until when the cluster was followed; None if too long ago."""
        at = self._rows.filter(self._pulse).values_list("seen_at", flat=True).first()
        return at if at and now - at < FRESH_FOR else None

    def find_observation(self, spec: LeaseSpec, *, now: datetime) -> CachedObservation | None:
        """Return what is known of one generation by one query; None if outdated."""
        at, anchor, pods, hosts, claims, last_seen = None, None, [], {}, [], {}
        for kind, mine, seen_at, body in self._read(spec):
            if kind == WATCH:
                last_seen[mine] = seen_at
            elif kind == RESOURCE_CLAIM.name:
                claims.append(decode(body, ResourceClaim))
            elif kind == POD.name:
                pods.append(decode(body, ObservedPod))
            elif kind == NODE.name:
                node = decode(body, ClusterNode)
                hosts[node.metadata.name] = node
            elif mine:
                anchor = decode(body, ClusterObjectHeader)
            else:
                at = seen_at
        if at is None or now - at >= FRESH_FOR:
            return None
        if anchor is not None and not belongs_to_lease(anchor, spec):
            anchor = None
        found = LeaseObjects(anchor_ref(spec), anchor, tuple(pods))
        pods_last_seen = last_seen.get(POD.name, at)
        proven = pods_last_seen if pods_last_seen < at - WATCH_SILENT_AFTER else at
        is_well = find_lost_node(spec.nodes, hosts, {}) is None
        return CachedObservation(proven, found, is_well, tuple(claims) if RESOURCE_CLAIM.name in last_seen else None)

    def _read(self, spec: LeaseSpec) -> list[tuple[str, str, datetime, bytes]]:
        ref = heartbeat_ref(self._cluster)
        values: dict[str, Any] = {
            "cluster": self._cluster,
            "order": spec_name(spec.lease_id, spec.generation),
            "node": NODE.name,
            "pod": POD.name,
            "claim": RESOURCE_CLAIM.name,
            "hosts": list(spec.nodes),
            "anchor": CONFIG_MAP.name,
            "namespace": ref.namespace,
            "pulse": ref.name,
        }
        rows = fetch_rows(load_sql("broker/clusters/lease_objects"), values)
        return [(kind, mine, at, body.encode()) for kind, mine, at, body in rows]

    def names(self, *, now: datetime) -> list[str] | None:
        """Return the spec names of this installation in the cluster; None if unknown."""
        if self.fresh_at(now) is None:
            return None
        ours = self._rows.exclude(spec_name="").exclude(kind=RESOURCE_CLAIM.name)  # deleted with its anchor
        if self._installation:
            marked = {"metadata": {"labels": {labels.INSTALLATION: self._installation}}}
            ours = ours.filter(body__contains=marked)
        return sorted(set(ours.values_list("spec_name", flat=True)))
