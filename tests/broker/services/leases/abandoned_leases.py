"""Clusters that reject leases or do not respond."""

from datetime import datetime

import pytest

from broker.domain.lifecycle.states import LeaseState
from broker.models import Allocation, Cluster, Gpu, Lease
from broker.provisioners.base import ClusterUnreachable, Observation, ObservedState, ProvisionSpec
from broker.provisioners.simulated import SimulatedProvisioner
from broker.services.inventory import cluster_provisioners
from broker.services.inventory.hardware import SimulatedRack
from broker.services.queue import lease_placement
from tenants.services.rls import tenant_scope
from tests.simulation import (
    MODEL,
    REGION,
    Simulation,
    create_fleet,
    create_tenant,
    held_allocations,
    offering,
    reload_lease,
)


class UnreliableClusters(SimulatedProvisioner):
    """Clusters that reject leases or do not respond."""

    def __init__(self) -> None:
        super().__init__()
        self.silent, self.full, self.keeps, self.mute = set[str](), set[str](), set[str](), set[str]()
        self.refuses, self.slow = set[str](), set[str]()
        self.removal_requests: list[str] = []

    def ensure(self, order: ProvisionSpec, *, now: datetime) -> Observation:
        self._ask(order)
        if order.cluster in self.full:
            return Observation(
                ObservedState.LOST, "its node does not accept it: 0/1 nodes are available", last_seen=now
            )
        if order.cluster in self.refuses:
            return Observation(ObservedState.REFUSED, "the image cannot be pulled: no route to its registry")
        if order.cluster in self.slow:
            return Observation(ObservedState.PENDING, "its image is being pulled")
        return super().ensure(order, now=now)

    def observe(self, order: ProvisionSpec, *, now: datetime) -> Observation:
        self._ask(order)
        return super().observe(order, now=now)

    def remove(self, order: ProvisionSpec, *, now: datetime) -> Observation:
        self._ask(order)
        self.removal_requests.append(order.name)
        if order.cluster in self.mute:
            raise ClusterUnreachable("it takes too long")
        if order.cluster in self.keeps:
            return Observation(ObservedState.PENDING, "shutting down")
        return super().remove(order, now=now)

    def _ask(self, order: ProvisionSpec) -> None:
        if order.cluster in self.silent:
            raise ClusterUnreachable("no route to host")


def two_clusters(monkeypatch: pytest.MonkeyPatch) -> UnreliableClusters:
    """Set up two clusters with one node each."""
    create_fleet(
        SimulatedRack("north-1", REGION, MODEL, nodes=1, gpus_per_node=1),
        SimulatedRack("north-2", REGION, MODEL, nodes=1, gpus_per_node=1),
    )
    made = UnreliableClusters()
    monkeypatch.setattr(cluster_provisioners, "provisioner_of", lambda order: made)
    return made


def holding_clusters(lease: Lease) -> list[str]:
    """Return the clusters of a lease's allocations that are not released."""
    with tenant_scope(lease.tenant_id):
        rows = Allocation.objects.filter(lease=lease, released_at=None).order_by("generation")
        return [each.gpu.node.cluster.name for each in rows.select_related("gpu__node__cluster")]


def find_cluster(name: str) -> Cluster:
    return Cluster.objects.get(name=name)


def cluster_of(lease: Lease) -> str:
    return Gpu.objects.select_related("node__cluster").get(pk=held_allocations(lease)[0].gpu_id).node.cluster.name


def other_cluster(name: str) -> str:
    return {"north-1": "north-2", "north-2": "north-1"}[name]


def place_lease(sim: Simulation, what: str = "whole-gpu", **wanted: str) -> tuple[Lease, str]:
    """Place a lease; return it and its cluster."""
    lease = sim.request_lease(create_tenant(), offering(what), **wanted)
    hints = [hint for hint in sim.messages if hint[2] == "broker.reconcile_lease"]
    assert hints
    with tenant_scope(lease.tenant_id):
        assert lease_placement.place_lease(Lease.objects.select_related("offering").get(pk=lease.pk), now=sim.now)
    return reload_lease(lease), cluster_of(lease)


def abandon_placement(sim: Simulation, unreliable: UnreliableClusters, **wanted: str) -> tuple[Lease, str]:
    """Return a lease in the second cluster, and its silent first one."""
    lease, first = place_lease(sim, **wanted)
    unreliable.silent = {find_cluster(first).pk}
    sim.run_with_sweeps(80)
    assert (reload_lease(lease).state, holding_clusters(lease)) == (LeaseState.ACTIVE, [first, other_cluster(first)])
    return reload_lease(lease), first
