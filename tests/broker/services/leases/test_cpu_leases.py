"""Leases without a GPU: requests, waiting, loss and spot reclaims."""

import pytest

from broker.domain.geometry.cpu_blocks import CPU_MODEL_NAME
from broker.domain.geometry.host_resources import HostResources
from broker.domain.lifecycle.states import EndReason, LeaseCondition, LeaseState
from broker.models import Cluster, Gpu, Lease, NodeState, Offering
from broker.services.leases.provision_specs import load_provision_spec
from broker.services.relocation import relocation_pools
from broker.services.repartition.repartition_pools import load_repartition_pools
from tenants.services.errors import InvalidValue
from tenants.services.rls import tenant_scope
from tests.simulation import (
    Simulation,
    TenantContext,
    create_cpu_nodes,
    create_gpus,
    create_tenant,
    held_allocations,
    lose_gpu,
    node_of,
    offering,
    reload_lease,
    set_node_state,
    state_path,
    transitions_of,
)

ONE_BLOCK = HostResources(16_000, 65_536, 102_400)
PAST_MINIMUM_S, NOTICE_S = 601, 300


def cpu_offering(profile: str = "4vcpu", price_class: str = "on_demand") -> Offering:
    return offering(profile, price_class=price_class, model=CPU_MODEL_NAME)


@pytest.fixture
def kestrel(sim: Simulation) -> TenantContext:
    create_cpu_nodes(cpu_node=ONE_BLOCK)
    return create_tenant()


def gpu_of(lease: Lease) -> Gpu:
    return Gpu.objects.get(pk=held_allocations(lease)[0].gpu_id)


def test_a_cpu_lease_lives_like_any_other(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, cpu_offering(), LeaseState.RELEASED)
    assert state_path(lease) == "requested queued provisioning active releasing released"


@pytest.mark.parametrize("quantity", [1, 2])
@pytest.mark.parametrize("topology", ["nvlink", "numa"])
def test_an_interconnect_of_cpus_is_refused(
    sim: Simulation, kestrel: TenantContext, topology: str, quantity: int
) -> None:
    with pytest.raises(InvalidValue, match="CPU 4 vCPU has no GPU, so there is no interconnect") as refusal:
        sim.request_lease(kestrel, cpu_offering(), topology=topology, quantity=quantity)
    assert refusal.value.field == "topology"


def test_several_cpu_leases_start_together(sim: Simulation, kestrel: TenantContext) -> None:
    gang = sim.create_lease(kestrel, cpu_offering("8vcpu"), quantity=2, same_node=True)
    assert {each.placement.lower for each in held_allocations(gang)} == {0, 4}


def test_a_cpu_lease_cannot_allow_relocation(sim: Simulation, kestrel: TenantContext) -> None:
    with pytest.raises(InvalidValue, match="Not available without a GPU"):
        sim.request_lease(kestrel, cpu_offering(), relocatable=True)


def test_cpu_nodes_are_never_relocated_from_or_repartitioned(sim: Simulation, kestrel: TenantContext) -> None:
    sim.create_lease(kestrel, cpu_offering())
    cluster = Cluster.objects.get()
    assert relocation_pools.load_relocation_pools(cluster, now=sim.now) == []
    assert load_repartition_pools(cluster.pk, now=sim.now) == []


def test_nothing_is_partitioned_for_a_cpu_lease(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, cpu_offering(), LeaseState.PROVISIONING)
    with tenant_scope(lease.tenant_id):
        spec = load_provision_spec(reload_lease(lease))
    assert [each.cutting for each in spec.slices] == [None]


def test_no_slice_is_said_to_be_reused_by_a_cpu_lease(sim: Simulation, kestrel: TenantContext) -> None:
    sim.create_lease(kestrel, cpu_offering(), LeaseState.RELEASED)
    again = sim.create_lease(kestrel, cpu_offering())
    [placed] = [step for step in transitions_of(again) if step.after == LeaseState.PROVISIONING]
    assert placed.cause == "placed on cpu-1 / n01 / CPU block 0"


def test_a_lease_without_room_waits_for_its_size(sim: Simulation, kestrel: TenantContext) -> None:
    sim.create_lease(kestrel, cpu_offering("16vcpu"))
    waiting = sim.request_lease(kestrel, cpu_offering())
    sim.run(5)
    assert reload_lease(waiting).pending_reason.startswith("Waits for one free CPU 4 vCPU.")


def test_a_lease_waits_for_a_cpu_node_and_not_for_a_gpu(sim: Simulation, kestrel: TenantContext) -> None:
    set_node_state(Gpu.objects.get().node, NodeState.CORDONED, sim)
    waiting = sim.request_lease(kestrel, cpu_offering())
    sim.run(5)
    reason = "Waits for CPU 4 vCPU: no CPU node is in service in eu-north now."
    assert reload_lease(waiting).pending_reason == reason


def test_a_size_that_no_node_can_hold_any_more_says_so(sim: Simulation, kestrel: TenantContext) -> None:
    wanted = cpu_offering("16vcpu")
    Gpu.objects.update(published={"2vcpu": [0]}, version=2)
    waiting = sim.request_lease(kestrel, wanted)
    sim.run(5)
    reason = "Waits for CPU 16 vCPU: no CPU node in eu-north is large enough for it now."
    assert reload_lease(waiting).pending_reason == reason


def test_lost_cpus_are_not_called_a_gpu(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, cpu_offering())
    lose_gpu(gpu_of(lease), sim, reason="its node no longer has them")
    sim.run(2)
    said = reload_lease(lease).conditions[LeaseCondition.UNREACHABLE]
    assert "CPU block 0 of n01 failed: its node no longer has them" in said


def test_a_cpu_lease_of_a_lost_node_ends(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, cpu_offering())
    set_node_state(node_of(lease), NodeState.LOST, sim)
    sim.run_with_sweeps(60)
    assert reload_lease(lease).end_reason == EndReason.DEVICE_LOST


def test_spot_cpus_are_reclaimed_for_an_on_demand_request(sim: Simulation, kestrel: TenantContext) -> None:
    spot = sim.create_lease(kestrel, cpu_offering("16vcpu", "spot"), max_duration_s=7200)
    sim.run(PAST_MINIMUM_S)
    wanted = sim.request_lease(kestrel, cpu_offering("8vcpu"))
    sim.run_with_sweeps(NOTICE_S + 60)
    assert reload_lease(spot).end_reason == EndReason.PREEMPTED
    assert reload_lease(wanted).state == LeaseState.ACTIVE


def test_a_gpu_request_never_reclaims_cpus(sim: Simulation, kestrel: TenantContext) -> None:
    create_gpus(1)
    spot = sim.create_lease(kestrel, cpu_offering("16vcpu", "spot"), max_duration_s=7200)
    sim.create_lease(kestrel, offering("whole-gpu"))
    sim.run(PAST_MINIMUM_S)
    sim.request_lease(kestrel, offering("1g.10gb"))
    sim.run(5)
    assert reload_lease(spot).reclaim_at is None
