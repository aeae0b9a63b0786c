"""What an agent saw of leases, told to them: most is written down at once, and only the rest rings for a worker."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

import msgspec
from django.db.models import Count

from broker.domain.lifecycle import HOLDS_CAPACITY
from broker.domain.states import LeaseState
from broker.models import Allocation, Cluster, ClusterObject, Lease
from broker.provisioners.base import Observation, Seen, order_parts
from broker.provisioners.kubernetes.kinds import CONFIG_MAP, NODE, POD
from broker.provisioners.kubernetes.objects import Pod, Thing
from broker.provisioners.kubernetes.observing import is_held, observe, remains_of
from broker.services import reconcile
from ports import doorbell
from tenants.services.walls import as_sweep

S = LeaseState
LIVING = (S.PROVISIONING, S.ACTIVE)
TELLING = (CONFIG_MAP.name, POD.name)  # a claim goes with its anchor
STRAY_S = 2.0  # what the cluster says within this long of what nobody accounts for is one piece of news
Concerned = tuple[str, str]  # a lease and its tenant


@dataclass(frozen=True, slots=True)
class Standing:
    """How a lease stands in our books."""

    generation: int
    state: LeaseState
    pods: int
    troubled: bool  # something is said about it that may be over
    said: str  # what it is at


def tell(
    cluster: Cluster, orders: Mapping[str, Concerned], *, now: datetime, robbed: Collection[str] = ()
) -> int:
    """Tell every lease of which an order has changed; return how many. Inside the transaction that keeps the rows.

    Of orders that may have been `robbed` of their devices its pods tell nothing: a worker has to look.
    """
    if not orders:
        return 0
    leases = _leases({lease_id for lease_id, _ in orders.values()})
    present = {
        name: leases[lease_id].pods
        for name, (lease_id, _) in orders.items()
        if lease_id in leases and leases[lease_id].generation == order_parts(name)[1]
    }
    seen = _seen(cluster, present, now)
    _tell_of_strays(cluster, [name for name in orders if _is_over(name, leases)], now)
    rung = set()
    for name, concerned in sorted(orders.items(), key=lambda each: each[1]):
        lease = leases.get(concerned[0])
        if lease is None:
            continue  # of nobody, as far as we know: that is the sweep's
        lost = name in robbed and lease.state in LIVING
        if lost or name not in present or not _is_told(lease, concerned, seen.get(name), now):
            rung.add(concerned)
    for lease_id, tenant_id in sorted(rung):
        doorbell.ring("broker.step", lease_id, tenant_id=tenant_id, now=now)
    return len(set(orders.values()))


def _is_over(name: str, leases: Mapping[str, Standing]) -> bool:
    """Tell whether a lease went on without an order, or has ended."""
    lease_id, generation = order_parts(name)
    lease = leases.get(lease_id)
    if lease is None or generation > lease.generation:
        return False  # our books may be what is wrong
    return generation < lease.generation or lease.state not in HOLDS_CAPACITY


def _tell_of_strays(cluster: Cluster, over: Collection[str], now: datetime) -> None:
    """Have what came to be after the proof that nothing was there looked after soon: nobody waits for its end.

    A controller may still act on what was there before its API server was away. What holds a place is minded by those
    who wait for the place.
    """
    if not over:
        return
    rows = ClusterObject.objects.filter(cluster=cluster, order_name__in=list(over), kind__in=TELLING)
    there = {order_parts(name) for name in rows.values_list("order_name", flat=True)}
    with as_sweep():
        held = Allocation.objects.filter(lease__in={pk for pk, _ in there}, released_at=None)
        minded = set(held.values_list("lease", "generation"))
    if there - minded and not doorbell.is_rung("broker.orphans", cluster.pk):
        doorbell.ring("broker.orphans", cluster.pk, now=now, after_s=STRAY_S)


def _is_told(lease: Standing, concerned: Concerned, seen: Observation | None, now: datetime) -> bool:
    """Tell a lease how its order is; False where a worker has to look."""
    if seen and seen.remains:
        return False  # what is held waits for a worker who lets it go
    match lease.state, seen:
        case S.PROVISIONING, Observation(seen=Seen.PENDING, text=text) if text in ("", lease.said):
            return True
        case S.ACTIVE, Observation(seen=Seen.READY) if not lease.troubled:
            return True
        case S.PROVISIONING, Observation(seen=Seen.READY | Seen.PENDING):
            return reconcile.told(*concerned, lease.generation, seen, now=now)
        case S.STOPPING | S.RELEASING, Observation():
            return True  # only once nothing is left of it must a worker have that confirmed
    return False


def _leases(ids: Collection[str]) -> dict[str, Standing]:
    """Return how some leases stand in our books."""
    with as_sweep():
        rows = Lease.objects.filter(pk__in=ids)
        found = list(rows.values_list("id", "generation", "state", "quantity", "conditions", "progress"))
        gangs = [pk for pk, _, _, quantity, *_ in found if quantity > 1]
        held = Allocation.objects.filter(lease__in=gangs, released_at=None, leaving_since=None)
        nodes = held.values_list("lease").annotate(Count("gpu__node", distinct=True)) if gangs else ()
        pods = dict(nodes)
    return {
        pk: Standing(generation, S(state), pods.get(pk, 1), bool(conditions), progress.get("text", ""))
        for pk, generation, state, _, conditions, progress in found
    }


def _seen(cluster: Cluster, pods_of: Mapping[str, int], now: datetime) -> dict[str, Observation]:
    """Say how some orders are, by the rows; one that nothing is left of is missing from the answer.

    Only what is well is said for certain: what may be an end is left to a worker, who asks the cluster itself. Of
    what has hardly begun nothing is said: the rest of it is news of its own.
    """
    there = ClusterObject.objects.filter(cluster=cluster, order_name__in=list(pods_of), kind__in=TELLING)
    pods, anchors = defaultdict[str, list[Pod]](list), dict[str, Thing]()
    for kind, name, body in there.values_list("kind", "order_name", "body"):
        if kind == POD.name:
            pods[name].append(msgspec.convert(body, Pod))
        else:
            anchors[name] = msgspec.convert(body, Thing)
    silent = _silent(cluster, {pod.spec.node_name for mine in pods.values() for pod in mine})
    found = {}
    for name in {*pods, *anchors}:
        anchor = anchors.get(name)
        if anchor and anchor.metadata.deletion_timestamp:
            going = (pod for pod in pods[name] if pod.metadata.deletion_timestamp)
            found[name] = Observation(
                Seen.GONE, remains=tuple(remains_of(pod) for pod in going if is_held(pod))
            )
        elif anchor is None or len(pods[name]) < pods_of[name]:
            found[name] = Observation(Seen.PENDING)
        elif silent & {pod.spec.node_name for pod in pods[name]}:
            found[name] = Observation(Seen.LOST)
        else:
            seen = observe(pods[name], ranks=pods_of[name], now=now)
            unplaced = seen.seen is Seen.PENDING and not all(pod.spec.node_name for pod in pods[name])
            found[name] = Observation(Seen.PENDING) if unplaced else seen
    return found


def _silent(cluster: Cluster, hosts: set[str]) -> set[str]:
    """Return which of some nodes the cluster no longer hears from."""
    unheard = [{"type": "Ready", "status": "Unknown"}]
    nodes = ClusterObject.objects.filter(cluster=cluster, kind=NODE.name, namespace="", name__in=hosts)
    return set(nodes.filter(body__status__conditions__contains=unheard).values_list("name", flat=True))
