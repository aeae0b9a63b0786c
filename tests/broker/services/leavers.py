"""Clusters that do not take what they are given, and leases that go on elsewhere, for tests of what is left."""

from datetime import datetime

import pytest

from broker.domain.states import LeaseState
from broker.models import Allocation, Cluster, Gpu, Lease
from broker.provisioners.base import Observation, Order, Seen, Unanswered
from broker.provisioners.simulated import SimulatedProvisioner
from broker.services import clusters
from broker.services.inventory import Rack
from broker.services.leases import placing
from tenants.services.walls import as_tenant
from tests.world import MODEL, REGION, Life, fleet, fresh, held, home, offering


class Moody(SimulatedProvisioner):
    """Clusters that do not take what they are given, or do not answer."""

    def __init__(self) -> None:
        super().__init__()
        self.silent, self.full, self.keeps, self.mute = set[str](), set[str](), set[str](), set[str]()
        self.refuses, self.slow = set[str](), set[str]()
        self.told_to_go: list[str] = []

    def ensure(self, order: Order, *, now: datetime) -> Observation:
        self._ask(order)
        if order.cluster in self.full:
            return Observation(Seen.LOST, "its node does not take it: 0/1 nodes are available", last_seen=now)
        if order.cluster in self.refuses:
            return Observation(Seen.REFUSED, "the image cannot be pulled: no route to its registry")
        if order.cluster in self.slow:
            return Observation(Seen.PENDING, "its image is being pulled")
        return super().ensure(order, now=now)

    def observe(self, order: Order, *, now: datetime) -> Observation:
        self._ask(order)
        return super().observe(order, now=now)

    def remove(self, order: Order, *, now: datetime) -> Observation:
        self._ask(order)
        self.told_to_go.append(order.name)
        if order.cluster in self.mute:
            raise Unanswered("it takes too long")
        if order.cluster in self.keeps:
            return Observation(Seen.PENDING, "shutting down")
        return super().remove(order, now=now)

    def _ask(self, order: Order) -> None:
        if order.cluster in self.silent:
            raise Unanswered("no route to host")


def two_clusters(monkeypatch: pytest.MonkeyPatch) -> Moody:
    """Set up two clusters with one node each."""
    fleet(
        Rack("north-1", REGION, MODEL, nodes=1, cards_per_node=1),
        Rack("north-2", REGION, MODEL, nodes=1, cards_per_node=1),
    )
    made = Moody()
    monkeypatch.setattr(clusters, "provisioner_of", lambda order: made)
    return made


def names(lease: Lease) -> list[str]:
    """Name the clusters of all places a lease has or had and are not free."""
    with as_tenant(lease.tenant_id):
        rows = Allocation.objects.filter(lease=lease, released_at=None).order_by("generation")
        return [each.gpu.node.cluster.name for each in rows.select_related("gpu__node__cluster")]


def cluster(name: str) -> Cluster:
    return Cluster.objects.get(name=name)


def where(lease: Lease) -> str:
    return Gpu.objects.select_related("node__cluster").get(pk=held(lease)[0].gpu_id).node.cluster.name


def other(name: str) -> str:
    return {"north-1": "north-2", "north-2": "north-1"}[name]


def begin(life: Life, what: str = "card", **wanted: str) -> tuple[Lease, str]:
    """Let a lease be placed, and say where."""
    lease = life.ask(home(), offering(what), **wanted)
    hints = [hint for hint in life.hints if hint[2] == "broker.step"]
    assert hints
    with as_tenant(lease.tenant_id):
        assert placing.place(Lease.objects.select_related("offering").get(pk=lease.pk), now=life.now)
    return fresh(lease), where(lease)


def gone_on(life: Life, moody: Moody, **wanted: str) -> tuple[Lease, str]:
    """Return a lease that runs in the second cluster, and the first, which is silent about the place it left."""
    lease, first = begin(life, **wanted)
    moody.silent = {cluster(first).pk}
    life.go(80)
    assert (fresh(lease).state, names(lease)) == (LeaseState.ACTIVE, [first, other(first)])
    return fresh(lease), first
