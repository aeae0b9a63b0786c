"""Delivery of an agent's observations to leases.

Most are written directly; only the rest enqueues work for a worker.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

import msgspec
from django.db.models import Count

from broker.domain.lifecycle.lease_transitions import HOLDS_CAPACITY
from broker.domain.lifecycle.states import LeaseState
from broker.models import Allocation, Cluster, ClusterObject, Lease
from broker.provisioners.base import Observation, ObservedState, parse_spec_name
from broker.provisioners.kubernetes.client.kinds import CONFIG_MAP, NODE, POD
from broker.provisioners.kubernetes.client.objects import ClusterObjectHeader, ObservedPod
from broker.provisioners.kubernetes.observe.pod_observation import has_metering_finalizer, held_pod, observe_pods
from broker.services.reconciler import lease_reconciler
from ports import outbox
from tenants.services.rls import system_scope

S = LeaseState
RUNNING_STATES = (S.PROVISIONING, S.ACTIVE)
NOTIFYING_KINDS = (CONFIG_MAP.name, POD.name)  # a ResourceClaim is deleted with its anchor
STRAY_DELAY_S = 2.0  # stray objects observed within this time share one outbox message
LeaseKey = tuple[str, str]  # lease id, tenant id


@dataclass(frozen=True, slots=True)
class LeaseSummary:
    """A lease's state in our rows, as far as observations need it."""

    generation: int
    state: LeaseState
    pods: int
    has_condition: bool  # it has a condition that may be over
    progress_text: str  # text of its progress


def notify_leases(
    cluster: Cluster, lease_keys: Mapping[str, LeaseKey], *, now: datetime, lost_devices: Collection[str] = ()
) -> int:
    """Notify each lease whose provision spec changed in the cluster; return how many.

    Runs inside the transaction that stores the observations. For specs in `lost_devices`, which may have lost
    their devices, pods prove nothing: a worker has to check.
    """
    if not lease_keys:
        return 0
    leases = _load_leases({lease_id for lease_id, _ in lease_keys.values()})
    present = {
        name: leases[lease_id].pods
        for name, (lease_id, _) in lease_keys.items()
        if lease_id in leases and leases[lease_id].generation == parse_spec_name(name)[1]
    }
    observations = _observe_specs(cluster, present, now)
    _enqueue_orphan_removal(cluster, [name for name in lease_keys if _is_superseded(name, leases)], now)
    to_notify = set()
    for name, concerned in sorted(lease_keys.items(), key=lambda each: each[1]):
        lease = leases.get(concerned[0])
        if lease is None:
            continue  # no known lease: handled by the sweep
        lost = name in lost_devices and lease.state in RUNNING_STATES
        if lost or name not in present or not _apply_directly(lease, concerned, observations.get(name), now):
            to_notify.add(concerned)
    for lease_id, tenant_id in sorted(to_notify):
        outbox.enqueue("broker.reconcile_lease", lease_id, tenant_id=tenant_id, now=now)
    return len(set(lease_keys.values()))


def _is_superseded(name: str, leases: Mapping[str, LeaseSummary]) -> bool:
    """Return whether the lease has ended or moved on to another generation."""
    lease_id, generation = parse_spec_name(name)
    lease = leases.get(lease_id)
    if lease is None or generation > lease.generation:
        return False  # our rows may be outdated
    return generation < lease.generation or lease.state not in HOLDS_CAPACITY


def _enqueue_orphan_removal(cluster: Cluster, over: Collection[str], now: datetime) -> None:
    """Enqueue orphan removal for objects that appeared after their lease was gone.

    A controller may still act on what it read before its API server was away. Objects that hold a placement
    are handled by whoever waits for the placement.
    """
    if not over:
        return
    rows = ClusterObject.objects.filter(cluster=cluster, spec_name__in=list(over), kind__in=NOTIFYING_KINDS)
    there = {parse_spec_name(name) for name in rows.values_list("spec_name", flat=True)}
    with system_scope():
        held = Allocation.objects.filter(lease__in={pk for pk, _ in there}, released_at=None)
        minded = set(held.values_list("lease", "generation"))
    if there - minded and not outbox.is_pending("broker.remove_orphans", cluster.pk):
        outbox.enqueue("broker.remove_orphans", cluster.pk, now=now, after_s=STRAY_DELAY_S)


def _apply_directly(lease: LeaseSummary, concerned: LeaseKey, observation: Observation | None, now: datetime) -> bool:
    """Apply an observation to a lease; return False if a worker has to check."""
    if observation and observation.remains:
        return False  # a held pod waits for a worker to let it go
    match lease.state, observation:
        case S.PROVISIONING, Observation(seen=ObservedState.PENDING, text=text) if text in ("", lease.progress_text):
            return True
        case S.ACTIVE, Observation(seen=ObservedState.READY) if not lease.has_condition:
            return True
        case S.PROVISIONING, Observation(seen=ObservedState.READY | ObservedState.PENDING):
            return lease_reconciler.apply_agent_observation(*concerned, lease.generation, observation, now=now)
        case S.STOPPING | S.RELEASING, Observation():
            return True  # a worker only has to confirm when nothing is left of it
    return False


def _load_leases(ids: Collection[str]) -> dict[str, LeaseSummary]:
    """Return the current state of some leases."""
    with system_scope():
        rows = Lease.objects.filter(pk__in=ids)
        found = list(rows.values_list("id", "generation", "state", "quantity", "conditions", "progress"))
        gangs = [pk for pk, _, _, quantity, *_ in found if quantity > 1]
        held = Allocation.objects.filter(lease__in=gangs, released_at=None, leaving_since=None)
        nodes = held.values_list("lease").annotate(Count("gpu__node", distinct=True)) if gangs else ()
        pods = dict(nodes)
    return {
        pk: LeaseSummary(generation, S(state), pods.get(pk, 1), bool(conditions), progress.get("text", ""))
        for pk, generation, state, _, conditions, progress in found
    }


def _observe_specs(cluster: Cluster, pods_of: Mapping[str, int], now: datetime) -> dict[str, Observation]:
    """Return observations of provision specs from stored rows; absent specs are missing.

    Only healthy states are reported as certain. What may be an end is left to a worker, who asks the cluster
    itself. A spec whose objects are incomplete counts as pending: the rest will be observed separately.
    """
    there = ClusterObject.objects.filter(cluster=cluster, spec_name__in=list(pods_of), kind__in=NOTIFYING_KINDS)
    pods, anchors = defaultdict[str, list[ObservedPod]](list), dict[str, ClusterObjectHeader]()
    for kind, name, body in there.values_list("kind", "spec_name", "body"):
        if kind == POD.name:
            pods[name].append(msgspec.convert(body, ObservedPod))
        else:
            anchors[name] = msgspec.convert(body, ClusterObjectHeader)
    silent = _silent_nodes(cluster, {pod.spec.node_name for mine in pods.values() for pod in mine})
    found = {}
    for name in {*pods, *anchors}:
        anchor = anchors.get(name)
        if anchor and anchor.metadata.deletion_timestamp:
            going = (pod for pod in pods[name] if pod.metadata.deletion_timestamp)
            found[name] = Observation(
                ObservedState.GONE, remains=tuple(held_pod(pod) for pod in going if has_metering_finalizer(pod))
            )
        elif anchor is None or len(pods[name]) < pods_of[name]:
            found[name] = Observation(ObservedState.PENDING)
        elif silent & {pod.spec.node_name for pod in pods[name]}:
            found[name] = Observation(ObservedState.LOST)
        else:
            observations = observe_pods(pods[name], ranks=pods_of[name], now=now)
            unplaced = observations.seen is ObservedState.PENDING and not all(pod.spec.node_name for pod in pods[name])
            found[name] = Observation(ObservedState.PENDING) if unplaced else observations
    return found


def _silent_nodes(cluster: Cluster, hosts: set[str]) -> set[str]:
    """Return which of these nodes the cluster no longer hears from."""
    unheard = [{"type": "Ready", "status": "Unknown"}]
    nodes = ClusterObject.objects.filter(cluster=cluster, kind=NODE.name, namespace="", name__in=hosts)
    return set(nodes.filter(body__status__conditions__contains=unheard).values_list("name", flat=True))
