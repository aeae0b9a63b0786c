"""What an agent saw of leases, told to them: most is written down at once, and only the rest rings for a worker."""

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime

import msgspec
from django.db.models import Count

from broker.domain.states import LeaseState
from broker.models import Allocation, Cluster, ClusterObject, Lease
from broker.provisioners.base import Observation, Seen, order_parts
from broker.provisioners.kubernetes.kinds import CONFIG_MAP, NODE, POD
from broker.provisioners.kubernetes.objects import Pod, Thing
from broker.provisioners.kubernetes.observing import observe
from broker.services import reconcile
from ports import doorbell
from tenants.services.walls import as_sweep

S = LeaseState
Concerned = tuple[str, str]  # a lease and its tenant


def tell(cluster: Cluster, orders: Mapping[str, Concerned], *, now: datetime) -> int:
    """Tell every lease of which an order has changed; return how many. Inside the transaction that keeps the rows."""
    if not orders:
        return 0
    standing, ranks = _standing(orders)
    seen = _seen(cluster, ranks, now)
    rung = set()
    for name, concerned in sorted(orders.items(), key=lambda each: each[1]):
        match standing[name], seen.get(name):
            case (S.PROVISIONING | S.ACTIVE, Observation(seen=Seen.READY | Seen.PENDING) as observation):
                needs_worker = not reconcile.told(*concerned, order_parts(name)[1], observation, now=now)
            case S.STOPPING | S.RELEASING, Observation():
                needs_worker = False  # only once nothing is left of it, which its cluster must confirm
            case _:
                needs_worker = True
        if needs_worker:
            rung.add(concerned)
    for lease_id, tenant_id in sorted(rung):
        doorbell.ring("broker.step", lease_id, tenant_id=tenant_id, now=now)
    return len(set(orders.values()))


def _standing(orders: Mapping[str, Concerned]) -> tuple[dict[str, LeaseState | None], dict[str, int]]:
    """Return the state of the lease of each order, None where it has gone on without, and how many pods it has."""
    leases = {lease_id for lease_id, _ in orders.values()}
    with as_sweep():
        rows = Lease.objects.filter(pk__in=leases).values_list("id", "generation", "state", "quantity")
        books = {pk: (generation, S(state), quantity) for pk, generation, state, quantity in rows}
        gangs = [pk for pk, (*_, quantity) in books.items() if quantity > 1]
        held = Allocation.objects.filter(lease__in=gangs, released_at=None, leaving_since=None)
        nodes = held.values_list("lease").annotate(Count("gpu__node", distinct=True)) if gangs else ()
        pods = dict(nodes)
    standing: dict[str, LeaseState | None] = {}
    ranks = {}
    for name, (lease_id, _) in orders.items():
        generation, state, _ = books.get(lease_id, (-1, S.RELEASED, 0))
        standing[name] = state if generation == order_parts(name)[1] else None
        if standing[name]:
            ranks[name] = pods.get(lease_id, 1)
    return standing, ranks


def _seen(cluster: Cluster, ranks: Mapping[str, int], now: datetime) -> dict[str, Observation]:
    """Say how some orders are, by the rows; one that nothing is left of is missing from the answer.

    Only what is well is said for certain: what may be an end is left to a worker, who asks the cluster itself.
    """
    there = ClusterObject.objects.filter(cluster=cluster, order_name__in=list(ranks))
    pods, anchors = defaultdict[str, list[Pod]](list), dict[str, Thing]()
    for kind, name, body in there.values_list("kind", "order_name", "body"):
        if kind == POD.name:
            pods[name].append(msgspec.convert(body, Pod))
        elif kind == CONFIG_MAP.name:
            anchors[name] = msgspec.convert(body, Thing)
    silent = _silent(cluster, {pod.spec.node_name for mine in pods.values() for pod in mine})
    found = {}
    for name in {*pods, *anchors}:
        anchor = anchors.get(name)
        if anchor is None or anchor.metadata.deletion_timestamp:
            found[name] = Observation(Seen.GONE)
        elif silent & {pod.spec.node_name for pod in pods[name]}:
            found[name] = Observation(Seen.LOST)
        else:
            found[name] = observe(pods[name], ranks=ranks[name], now=now)
    return found


def _silent(cluster: Cluster, hosts: set[str]) -> set[str]:
    """Return which of some nodes the cluster no longer hears from."""
    unheard = [{"type": "Ready", "status": "Unknown"}]
    nodes = ClusterObject.objects.filter(cluster=cluster, kind=NODE.name, namespace="", name__in=hosts)
    return set(nodes.filter(body__status__conditions__contains=unheard).values_list("name", flat=True))
