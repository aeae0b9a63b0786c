"""What a cluster's agent saw: kept as rows, and told to the leases it is about. Only news is told."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
from django.db import connection, transaction
from django.db.models import Max, Min

from broker.models import Cluster, ClusterObject, ClusterWatch
from broker.provisioners.kubernetes.kinds import RESOURCE_CLAIM
from broker.services import news
from ports import database

SILENT_S = 60.0  # of some kind or other a server speaks more often than that, however little happens


@dataclass(frozen=True)
class Sighting:
    """One object as it was seen; `body` is None when it is gone."""

    kind: str
    namespace: str
    name: str
    uid: str
    version: int
    lease_id: str = ""
    tenant_id: str = ""
    order_name: str = ""
    body: dict[str, Any] | msgspec.Raw | None = None
    age_s: float = 0.0  # how long ago it was so, where that is known


# An older version of the same object never replaces a newer one, in whatever order they arrive. One statement, so
# that a batch costs one wait; and it looks nowhere but where the constraint does, so that a plan made while the table
# was empty stays good.
KEEP = """
WITH heard AS (
  INSERT INTO broker_clusterwatch (cluster_id, kind, version, heard_at, synced_at)
  SELECT %(cluster)s, h.kind, h.version, %(now)s, %(now)s
    FROM jsonb_to_recordset(%(heard)s::jsonb) AS h(kind text, version bigint)
      ON CONFLICT (cluster_id, kind) DO UPDATE
     SET version = excluded.version, heard_at = excluded.heard_at,
         synced_at = CASE WHEN %(listed)s THEN excluded.synced_at ELSE broker_clusterwatch.synced_at END
)
INSERT INTO broker_clusterobject
       (cluster_id, kind, namespace, name, uid, version, order_name, body, seen_at)
SELECT %(cluster)s, s.kind, s.namespace, s.name, s.uid, s.version, s.order_name, s.body,
       %(now)s::timestamptz - make_interval(secs => s.age_s)
  FROM jsonb_to_recordset(%(seen)s::jsonb) AS s(kind text, namespace text, name text, uid text, version bigint,
                                         order_name text, body jsonb, age_s float8)
    ON CONFLICT (cluster_id, kind, namespace, name) DO UPDATE
   SET uid = excluded.uid, version = excluded.version, order_name = excluded.order_name,
       body = excluded.body, seen_at = excluded.seen_at
 WHERE excluded.version > broker_clusterobject.version
RETURNING kind, namespace, name
"""
DROP = """
DELETE FROM broker_clusterobject o
 USING jsonb_to_recordset(%(gone)s::jsonb) AS s(kind text, namespace text, name text, version bigint)
 WHERE o.cluster_id = %(cluster)s AND o.kind = s.kind AND o.namespace = s.namespace AND o.name = s.name
   AND o.version <= s.version
RETURNING o.kind, o.namespace, o.name
"""
Key = tuple[str, str, str]  # a kind, a namespace, a name
COLUMNS = ("kind", "namespace", "name", "uid", "version", "order_name", "body", "age_s")


@transaction.atomic
def note(
    cluster: Cluster,
    sightings: Iterable[Sighting],
    *,
    now: datetime,
    reached: Mapping[str, int] | None = None,
    listed: bool = False,
) -> int:
    """Keep what was seen and how far each kind was followed, and tell every lease that it is news of.

    Return how many were told.
    """
    found = list(sightings)
    latest = {(s.kind, s.namespace, s.name): s for s in found}
    there = [s for s in latest.values() if s.body is not None]
    gone = [s for s in latest.values() if s.body is None]
    fresh = _keep(cluster, there, reached or {}, listed, now) if there or reached else set()
    fresh |= _drop(cluster, gone) if gone else set()
    orders = {
        s.order_name: (s.lease_id, s.tenant_id) for key, s in latest.items() if key in fresh and s.lease_id
    }
    # Whatever came of it since: a claim that was exchanged is gone and there again within a moment.
    robbed = {
        s.order_name: (s.lease_id, s.tenant_id) for s in found if s.kind == RESOURCE_CLAIM.name and s.lease_id
    }
    return news.tell(cluster, orders | robbed, now=now, robbed=robbed)


@transaction.atomic
def forget_others(
    cluster: Cluster, kind: str, there: Collection[tuple[str, str]], *, version: int, now: datetime
) -> int:
    """Take a list as all there is: what we had of this kind and is not in it went while nobody watched."""
    before = ClusterObject.objects.filter(cluster=cluster, kind=kind, version__lte=version)
    names = before.values_list("id", "namespace", "name")
    missing = [pk for pk, namespace, name in names if (namespace, name) not in there]
    gone = [
        Sighting(kind, old.namespace, old.name, old.uid, version, *_lease_of(old))
        for old in ClusterObject.objects.filter(pk__in=missing)
    ]
    return note(cluster, gone, now=now, reached={kind: version}, listed=True)


def lag_s(cluster: Cluster, *, now: datetime) -> float | None:
    """Return for how long the quietest watch has heard nothing; None before the first word."""
    moments = list(ClusterWatch.objects.filter(cluster=cluster).values_list("heard_at", flat=True))
    return max((now - moment).total_seconds() for moment in moments) if moments else None


@dataclass(frozen=True, slots=True)
class Agent:
    """How a Kubernetes cluster is followed."""

    cluster_id: str
    cluster: str
    lag_s: float | None  # for how long the quietest watch has heard nothing; None: nobody ever followed it
    heard_at: datetime  # the last word on any watch, or when the cluster joined
    silent: bool
    frozen: bool


def is_silent(heard: datetime, now: datetime) -> bool:
    return (now - heard).total_seconds() > SILENT_S


def agents(*, now: datetime) -> list[Agent]:
    """Return how every Kubernetes cluster is followed; one query."""
    rows = Cluster.objects.filter(provisioner="kubernetes").annotate(
        heard=Max("watches__heard_at"), quietest=Min("watches__heard_at")
    )
    return [
        Agent(
            each.pk,
            each.name,
            (now - each.quietest).total_seconds() if each.quietest else None,
            heard := each.heard or each.created_at,
            is_silent(heard, now),
            bool(each.frozen),
        )
        for each in rows.order_by("name")
    ]


def _lease_of(old: ClusterObject) -> tuple[str, str, str]:
    marks = old.body.get("metadata", {}).get("labels", {})
    return marks.get("gpubroker.dev/lease", ""), marks.get("gpubroker.dev/tenant", ""), old.order_name


def _keep(
    cluster: Cluster, there: list[Sighting], reached: Mapping[str, int], listed: bool, now: datetime
) -> set[Key]:
    """Write what is there and how far each kind was followed; return what of it was newer than what we had."""
    values: dict[str, Any] = {
        "cluster": cluster.pk,
        "now": now,
        "listed": listed,
        "seen": _json([{column: getattr(row, column) for column in COLUMNS} for row in there]),
        "heard": _json([{"kind": kind, "version": version} for kind, version in reached.items()]),
    }
    with database.prepared() as cursor:
        cursor.execute(KEEP, values)
        return set(cursor.fetchall())


def _drop(cluster: Cluster, gone: list[Sighting]) -> set[Key]:
    rows = [{column: getattr(row, column) for column in COLUMNS if column != "body"} for row in gone]
    with connection.cursor() as cursor:
        cursor.execute(DROP, {"cluster": cluster.pk, "gone": _json(rows)})
        return set(cursor.fetchall())


def _json(rows: list[dict[str, Any]]) -> str:
    """Write rows as PostgreSQL takes them in; bodies are JSON already, mostly."""
    return msgspec.json.encode(rows).decode()
