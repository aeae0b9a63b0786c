"""What a cluster's agent wrote down, for whoever would else ask the cluster. Believed only while the agent is fresh.

The agent writes a pulse into the cluster every few seconds and sees it come back by its own watch: who finds that row
young knows that the cluster answered, that it is the one that joined, and that all the other rows are as young.
What is not among them proves nothing: that something is gone is only ever said by the cluster itself.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q

from broker.models import ClusterObject
from broker.provisioners.base import order_name
from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.finding import Found, anchor_ref, is_ours
from broker.provisioners.kubernetes.kinds import CONFIG_MAP, NODE, POD, RESOURCE_CLAIM
from broker.provisioners.kubernetes.nodes import silent
from broker.provisioners.kubernetes.objects import Claim, Node, Pod, Thing, read
from broker.provisioners.kubernetes.pulse import pulse_ref
from broker.provisioners.kubernetes.spec import LeaseSpec
from ports import database

FRESH = timedelta(seconds=20)  # four pulses
# A server speaks up on a watch every minute, be it to say that nothing happened: one that is quiet for longer has
# stalled or lags, and vouches for nothing after its last word, whatever comes by the pulse's.
SPEAKS_WITHIN = timedelta(seconds=70)
WATCH = ""  # as a kind: how far something was followed
# Read at every look at a lease: each part one look into an index, whatever the planner knows of the table.
OF_ORDER = """
SELECT kind, order_name, seen_at, body::text FROM broker_clusterobject
 WHERE cluster_id = %(cluster)s AND order_name = %(order)s
 UNION ALL
SELECT kind, order_name, seen_at, body::text FROM broker_clusterobject
 WHERE cluster_id = %(cluster)s AND kind = %(node)s AND namespace = '' AND name = ANY(%(hosts)s::text[])
 UNION ALL
SELECT kind, order_name, seen_at, body::text FROM broker_clusterobject
 WHERE cluster_id = %(cluster)s AND kind = %(anchor)s AND namespace = %(namespace)s AND name = %(pulse)s
 UNION ALL
SELECT '', kind, heard_at, '' FROM broker_clusterwatch
 WHERE cluster_id = %(cluster)s AND kind IN (%(pod)s, %(claim)s)
"""


@dataclass(frozen=True)
class Remembered:
    """One generation of a lease as it was seen, and when all of that was last known to be so."""

    at: datetime
    found: Found
    well: bool  # its nodes are there and heard of
    claims: tuple[Claim, ...] | None = None  # None where claims are not followed


class Memory:
    """The rows of one cluster's agent."""

    def __init__(self, cluster_id: str, installation: str) -> None:
        self._cluster = cluster_id
        self._rows = ClusterObject.objects.filter(cluster=cluster_id)
        self._installation = installation
        ref = pulse_ref(cluster_id)
        self._pulse = Q(kind=CONFIG_MAP.name, namespace=ref.namespace, name=ref.name)

    def fresh_at(self, now: datetime) -> datetime | None:
        """Return the moment up to which the cluster was followed; None when that lies too far back."""
        at = self._rows.filter(self._pulse).values_list("seen_at", flat=True).first()
        return at if at and now - at < FRESH else None

    def of_order(self, spec: LeaseSpec, *, now: datetime) -> Remembered | None:
        """Return what is known of one generation; one query. None when that is too old to be believed."""
        at, anchor, pods, hosts, claims, heard = None, None, [], {}, [], {}
        for kind, mine, seen_at, body in self._read(spec):
            if kind == WATCH:
                heard[mine] = seen_at
            elif kind == RESOURCE_CLAIM.name:
                claims.append(read(body, Claim))
            elif kind == POD.name:
                pods.append(read(body, Pod))
            elif kind == NODE.name:
                node = read(body, Node)
                hosts[node.metadata.name] = node
            elif mine:
                anchor = read(body, Thing)
            else:
                at = seen_at
        if at is None or now - at >= FRESH:
            return None
        if anchor is not None and not is_ours(anchor, spec):
            anchor = None
        found = Found(anchor_ref(spec), anchor, tuple(pods))
        pods_heard = heard.get(POD.name, at)
        proven = pods_heard if pods_heard < at - SPEAKS_WITHIN else at
        is_well = silent(spec.nodes, hosts, {}) is None
        return Remembered(proven, found, is_well, tuple(claims) if RESOURCE_CLAIM.name in heard else None)

    def _read(self, spec: LeaseSpec) -> list[tuple[str, str, datetime, bytes]]:
        ref = pulse_ref(self._cluster)
        values: dict[str, Any] = {
            "cluster": self._cluster,
            "order": order_name(spec.lease_id, spec.generation),
            "node": NODE.name,
            "pod": POD.name,
            "claim": RESOURCE_CLAIM.name,
            "hosts": list(spec.nodes),
            "anchor": CONFIG_MAP.name,
            "namespace": ref.namespace,
            "pulse": ref.name,
        }
        with database.prepared() as cursor:
            cursor.execute(OF_ORDER, values)
            return [(kind, mine, at, body.encode()) for kind, mine, at, body in cursor.fetchall()]

    def names(self, *, now: datetime) -> list[str] | None:
        """Name every order of this installation that something is there of; None when nobody knows."""
        if self.fresh_at(now) is None:
            return None
        ours = self._rows.exclude(order_name="").exclude(
            kind=RESOURCE_CLAIM.name
        )  # which goes with its anchor
        if self._installation:
            marked = {"metadata": {"labels": {labels.INSTALLATION: self._installation}}}
            ours = ours.filter(body__contains=marked)
        return sorted(set(ours.values_list("order_name", flat=True)))
