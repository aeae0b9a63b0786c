"""Leases on a lost GPU, although their pods seem to run."""

from datetime import timedelta

import pytest

from broker.domain.lifecycle.states import EndReason, LeaseCondition, LeaseState
from broker.models import Gpu, GpuHealth, Lease, SimulatedPod
from broker.provisioners.base import spec_name
from broker.services.inventory import hardware
from broker.services.inventory.hardware import SimulatedRack
from broker.services.leases.lifecycle import termination
from tenants.services.actors import SYSTEM
from tenants.services.rls import tenant_scope
from tests.simulation import (
    MODEL,
    REGION,
    Simulation,
    create_fleet,
    create_gpus,
    create_tenant,
    held_allocations,
    lose_gpu,
    offering,
    reload_lease,
)

REASON = "its node reports a fault: xid=79"


def gpu_of(lease: Lease) -> Gpu:
    [allocation] = held_allocations(lease)
    return Gpu.objects.get(pk=allocation.gpu_id)


@pytest.fixture
def leases(sim: Simulation) -> list[Lease]:
    create_gpus(2)
    kestrel = create_tenant()
    return [reload_lease(sim.create_lease(kestrel, offering("whole-gpu"))) for _ in range(2)]


def test_the_lease_of_a_lost_gpu_is_marked_at_once_and_ends_as_device_lost(
    leases: list[Lease], sim: Simulation
) -> None:
    affected, other = leases
    sim.run(60)
    lost = sim.now
    lose_gpu(gpu_of(affected), sim, reason=REASON)
    sim.run(2)
    marked = reload_lease(affected)
    assert (marked.state, marked.seen_at) == (LeaseState.ACTIVE, lost)
    assert REASON in marked.conditions[LeaseCondition.UNREACHABLE]
    sim.run_with_sweeps(45)
    ended = reload_lease(affected)
    assert (ended.end_reason, ended.ended_at) == (EndReason.DEVICE_LOST, lost.replace(microsecond=0))
    untouched = reload_lease(other)
    assert (untouched.state, untouched.conditions) == (LeaseState.ACTIVE, {})


def test_a_lease_continues_if_its_gpu_is_reported_well_again_in_time(leases: list[Lease], sim: Simulation) -> None:
    lease = leases[0]
    gpu = gpu_of(lease)
    lose_gpu(gpu, sim, reason=REASON)
    sim.run_with_sweeps(10)
    hardware.set_gpu_lost(gpu, False, now=sim.now)
    sim.run_with_sweeps(60)
    well = reload_lease(lease)
    assert (well.state, well.conditions) == (LeaseState.ACTIVE, {})


def test_an_operators_quarantine_ends_no_lease(leases: list[Lease], sim: Simulation) -> None:
    gpu = gpu_of(leases[0])
    hardware.set_gpu_health(gpu, GpuHealth.UNHEALTHY, reason="to be replaced", actor=SYSTEM, now=sim.now)
    sim.run_with_sweeps(120)
    assert [reload_lease(each).state for each in leases] == [LeaseState.ACTIVE] * 2


def test_a_lease_that_starts_on_a_lost_gpu_is_placed_elsewhere(sim: Simulation) -> None:
    create_fleet(SimulatedRack("north-1", REGION, MODEL, nodes=2, gpus_per_node=1))
    lease = sim.request_lease(create_tenant(), offering("whole-gpu"))
    sim.run(0.1)
    assert reload_lease(lease).state == LeaseState.PROVISIONING
    broken = gpu_of(lease)
    lose_gpu(broken, sim, reason=REASON)
    sim.run_with_sweeps(60)
    assert reload_lease(lease).state == LeaseState.ACTIVE
    assert broken.pk not in {each.gpu_id for each in held_allocations(lease)}


def test_a_lease_that_ends_on_a_lost_gpu_holds_it_until_its_pod_is_gone(leases: list[Lease], sim: Simulation) -> None:
    ending = leases[0]
    gpu = gpu_of(ending)
    SimulatedPod.objects.filter(name=spec_name(ending.pk, ending.generation)).update(
        gone_at=sim.now + timedelta(hours=1)
    )
    with tenant_scope(ending.tenant_id):
        termination.release_lease(ending, reason=EndReason.BY_TENANT, now=sim.now)
    lose_gpu(gpu, sim, reason=REASON)
    sim.run_with_sweeps(120)
    assert reload_lease(ending).state == LeaseState.RELEASING
    assert gpu_of(ending) == gpu


def test_a_return_to_service_ends_the_loss(leases: list[Lease], sim: Simulation) -> None:
    gpu = gpu_of(leases[0])
    lose_gpu(gpu, sim, reason=REASON)
    hardware.set_gpu_health(gpu, GpuHealth.HEALTHY, reason="reset", actor=SYSTEM, now=sim.now + timedelta(seconds=1))
    gpu.refresh_from_db()
    assert gpu.lost_since is None
