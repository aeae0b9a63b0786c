"""Objects observed by a cluster's agent: stored as rows, and reported to their leases."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
from django.db import transaction
from django.db.models import Max, Min

from broker.models import Cluster, ClusterObject
from broker.provisioners.kubernetes.client.kinds import RESOURCE_CLAIM
from broker.services.clusters.observed import lease_notifications
from ports.postgres import sql_statements
from ports.postgres.sql_statements import load_sql, query_rows

AGENT_TIMEOUT_S = 60.0  # a server sends events of some kind more often than that, even when idle


@dataclass(frozen=True)
class ObservedObject:
    """One observed object; `body` is None when it is gone."""

    kind: str
    namespace: str
    name: str
    uid: str
    version: int
    lease_id: str = ""
    tenant_id: str = ""
    spec_name: str = ""
    body: dict[str, Any] | msgspec.Raw | None = None
    age_s: float = 0.0  # age of the observation, where known


StoredKey = tuple[str, str, str]  # kind, namespace, name
COLUMNS = ("kind", "namespace", "name", "uid", "version", "spec_name", "body", "age_s")


@transaction.atomic
def record_observed(
    cluster: Cluster,
    sightings: Iterable[ObservedObject],
    *,
    now: datetime,
    reached: Mapping[str, int] | None = None,
    listed: bool = False,
) -> int:
    """Store observations and watch positions, and notify the leases that changed.

    Returns how many leases were notified.
    """
    found = list(sightings)
    latest = {(s.kind, s.namespace, s.name): s for s in found}
    there = [s for s in latest.values() if s.body is not None]
    gone = [s for s in latest.values() if s.body is None]
    fresh = _store_objects(cluster, there, reached or {}, listed, now) if there or reached else set()
    fresh |= _delete_objects(cluster, gone) if gone else set()
    lease_keys = {s.spec_name: (s.lease_id, s.tenant_id) for key, s in latest.items() if key in fresh and s.lease_id}
    # Even if it is back by now: a replaced claim is deleted and created within a moment.
    lost_devices = {
        s.spec_name: (s.lease_id, s.tenant_id) for s in found if s.kind == RESOURCE_CLAIM.name and s.lease_id
    }
    return lease_notifications.notify_leases(cluster, lease_keys | lost_devices, now=now, lost_devices=lost_devices)


@transaction.atomic
def prune_missing(
    cluster: Cluster, kind: str, there: Collection[tuple[str, str]], *, version: int, now: datetime
) -> int:
    """Delete stored objects of a kind that are missing from a complete list."""
    before = ClusterObject.objects.filter(cluster=cluster, kind=kind, version__lte=version)
    names = before.values_list("id", "namespace", "name")
    missing = [pk for pk, namespace, name in names if (namespace, name) not in there]
    gone = [
        ObservedObject(kind, old.namespace, old.name, old.uid, version, *_lease_labels(old))
        for old in ClusterObject.objects.filter(pk__in=missing)
    ]
    return record_observed(cluster, gone, now=now, reached={kind: version}, listed=True)


@dataclass(frozen=True, slots=True)
class AgentStatus:
    """Status of a Kubernetes cluster's agent."""

    cluster_id: str
    cluster: str
    lag_s: float | None  # seconds since the quietest watch heard anything; None: it was never followed
    last_event_at: datetime  # the last event on any watch, or when the cluster was registered
    is_silent: bool
    frozen: bool


def is_agent_silent(last_heard_at: datetime, now: datetime) -> bool:
    return (now - last_heard_at).total_seconds() > AGENT_TIMEOUT_S


def agent_statuses(*, now: datetime) -> list[AgentStatus]:
    """Return the agent status of every Kubernetes cluster; one query."""
    rows = Cluster.objects.filter(provisioner="kubernetes").annotate(
        last_heard_at=Max("watches__last_event_at"), quietest=Min("watches__last_event_at")
    )
    return [
        AgentStatus(
            each.pk,
            each.name,
            (now - each.quietest).total_seconds() if each.quietest else None,
            last_heard_at := each.last_heard_at or each.created_at,
            is_agent_silent(last_heard_at, now),
            bool(each.frozen),
        )
        for each in rows.order_by("name")
    ]


def _lease_labels(old: ClusterObject) -> tuple[str, str, str]:
    marks = old.body.get("metadata", {}).get("labels", {})
    return marks.get("gpubroker.dev/lease", ""), marks.get("gpubroker.dev/tenant", ""), old.spec_name


def _store_objects(
    cluster: Cluster, there: list[ObservedObject], reached: Mapping[str, int], listed: bool, now: datetime
) -> set[StoredKey]:
    """Store objects and watch positions; return the keys of objects that were newer."""
    values: dict[str, Any] = {
        "cluster": cluster.pk,
        "now": now,
        "listed": listed,
        "seen": _encode_rows([{column: getattr(row, column) for column in COLUMNS} for row in there]),
        "watch_versions": _encode_rows([{"kind": kind, "version": version} for kind, version in reached.items()]),
    }
    with sql_statements.prepared_cursor() as cursor:
        cursor.execute(load_sql("broker/clusters/store_objects"), values)
        return set(cursor.fetchall())


def _delete_objects(cluster: Cluster, gone: list[ObservedObject]) -> set[StoredKey]:
    rows = [{column: getattr(row, column) for column in COLUMNS if column != "body"} for row in gone]
    values = {"cluster": cluster.pk, "gone": _encode_rows(rows)}
    return set(query_rows("broker/clusters/delete_objects", values))


def _encode_rows(rows: list[dict[str, Any]]) -> str:
    """Encode rows as JSON for PostgreSQL; most bodies are JSON already."""
    return msgspec.json.encode(rows).decode()
