"""A node that refuses a lease's pod is closed for all leases."""

from datetime import datetime, timedelta

import pytest

from broker.domain.lifecycle.states import LeaseState
from broker.models import Gpu, Node
from broker.provisioners.base import Observation, ObservedState, ProvisionSpec
from broker.provisioners.simulated import SimulatedProvisioner
from broker.services.inventory import cluster_provisioners, hardware
from broker.services.inventory.hardware import REFUSED_FOR, SimulatedRack
from tests.simulation import (
    MODEL,
    REGION,
    Simulation,
    create_fleet,
    create_tenant,
    held_allocations,
    node_of,
    offering,
    reload_lease,
)

REASON = "its node does not accept it: 0/2 nodes are available: 1 Insufficient cpu."


class RefusingProvisioner(SimulatedProvisioner):
    """A simulated cluster whose named nodes refuse pods."""

    def __init__(self) -> None:
        self.full: set[str] = set()

    def ensure(self, spec: ProvisionSpec, *, now: datetime) -> Observation:
        if any(each.node in self.full for each in spec.slices):
            return Observation(ObservedState.LOST, REASON, last_seen=now, refused_by_node=True)
        return super().ensure(spec, now=now)


@pytest.fixture
def cluster(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> RefusingProvisioner:
    made = RefusingProvisioner()
    monkeypatch.setattr(cluster_provisioners, "shared_provisioner", lambda: made)
    create_fleet(SimulatedRack("north-1", REGION, MODEL, nodes=2, gpus_per_node=2))
    return made


def test_other_leases_avoid_a_node_that_refused_one(cluster: RefusingProvisioner, sim: Simulation) -> None:
    full = Node.objects.order_by("name")[0]
    cluster.full = {full.pk}
    kestrel = create_tenant()
    lease = sim.request_lease(kestrel, offering("whole-gpu"))
    sim.run(20)
    assert reload_lease(lease).state == LeaseState.ACTIVE
    assert node_of(lease) != full.pk
    full.refresh_from_db()
    assert full.refused_reason == f"It did not accept a lease: {REASON}"
    assert full.unsold_reason == full.refused_reason
    assert Gpu.objects.sellable().count() == 2
    second, third = (sim.request_lease(kestrel, offering("whole-gpu")) for _ in range(2))
    sim.run(20)
    assert node_of(second) == node_of(lease)
    assert (reload_lease(third).state, held_allocations(third)) == (LeaseState.QUEUED, [])


def test_a_refusing_node_is_sold_again_after_its_time(cluster: RefusingProvisioner, sim: Simulation) -> None:
    full = Node.objects.order_by("name")[0]
    hardware.close_refusing_node(full.pk, reason=REASON, now=sim.now)
    assert hardware.reopen_nodes(now=sim.now + REFUSED_FOR - timedelta(seconds=1)) == 0
    assert hardware.reopen_nodes(now=sim.now + REFUSED_FOR) == 1
    full.refresh_from_db()
    assert (full.refused_until, full.refused_reason, full.unsold_reason) == (None, "", "")
    assert Gpu.objects.sellable().count() == 4


def test_a_lease_that_waits_is_placed_when_a_refusing_node_is_sold_again(
    cluster: RefusingProvisioner, sim: Simulation
) -> None:
    for node in Node.objects.all():
        hardware.close_refusing_node(node.pk, reason=REASON, now=sim.now)
    lease = sim.request_lease(create_tenant(), offering())
    sim.run(1)
    assert reload_lease(lease).state == LeaseState.QUEUED
    sim.run(REFUSED_FOR.total_seconds())
    hardware.reopen_nodes(now=sim.now)
    sim.run(20)
    assert reload_lease(lease).state == LeaseState.ACTIVE


def test_a_lease_that_every_node_refuses_closes_only_two(cluster: RefusingProvisioner, sim: Simulation) -> None:
    create_fleet(SimulatedRack("north-2", REGION, MODEL, nodes=3, gpus_per_node=2))
    cluster.full = set(Node.objects.values_list("pk", flat=True))
    sim.request_lease(create_tenant(), offering("whole-gpu"))
    sim.run_with_sweeps(120)
    assert Node.objects.exclude(refused_reason="").count() == 2
