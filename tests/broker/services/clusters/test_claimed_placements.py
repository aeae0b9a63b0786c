"""Placements follow the devices that the scheduler gave to claims."""

from datetime import timedelta

import psycopg
import pytest
from django.db.backends.postgresql.psycopg_any import NumericRange

from broker.domain.lifecycle.states import LeaseState
from broker.models import Allocation, ClusterObject, Gpu, Lease, PromisedSlot, SpotReclaim
from broker.services.leases.abandoned_placements import SLICE_TAKEN
from broker.services.placement.shared_index import current_index
from broker.services.reconciler import lease_reconciler
from tenants.services.rls import tenant_scope
from tests.broker.services.clusters.dynamic_devices import DynamicGpu
from tests.database import OwnDatabase
from tests.simulation import (
    MODEL,
    REGION,
    Simulation,
    TenantContext,
    create_gpus,
    create_tenant,
    held_allocations,
    offering,
    reload_lease,
    simulate,
    state_path,
    transitions_of,
)

S = LeaseState


@pytest.fixture
def tenant(sim: Simulation) -> TenantContext:
    create_gpus(1)
    return create_tenant()


@pytest.fixture
def gpu(sim: Simulation, tenant: TenantContext) -> DynamicGpu:
    return DynamicGpu(sim)


def update_allocation(lease: Lease, **fields: object) -> None:
    with tenant_scope(lease.tenant_id):
        Allocation.objects.filter(lease=lease, released_at=None).update(**fields)


def test_an_allocation_moves_to_the_start_of_its_device(gpu: DynamicGpu, tenant: TenantContext) -> None:
    lease = gpu.book(tenant, 6)
    (before,), version = held_allocations(lease), reload_lease(lease).version
    gpu.give(lease, 0)
    assert gpu.settle()
    (after,) = held_allocations(lease)
    assert (after.pk, after.placement, after.held_at) == (before.pk, NumericRange(0, 1, "[)"), before.held_at)
    assert reload_lease(lease).version == version + 1
    assert [each[2:4] for each in gpu.sim.messages if each[2] == "broker.run_queue"] == [
        ("broker.run_queue", f"{MODEL}|{REGION}")
    ]


def test_a_settled_gpu_is_not_locked(gpu: DynamicGpu, tenant: TenantContext) -> None:
    lease = gpu.book(tenant, 6)
    gpu.give(lease, 6)
    version = reload_lease(lease).version
    gpu.sim.messages.clear()
    assert gpu.settle()
    assert (gpu.starts(), reload_lease(lease).version) == ({lease.pk: 6}, version)
    assert gpu.sim.messages == []


def test_allocations_of_two_tenants_exchange_their_places(gpu: DynamicGpu, tenant: TenantContext) -> None:
    first, second = gpu.book(tenant, 6), gpu.book(create_tenant("Merlin"), 5)
    gpu.give(first, 5)
    gpu.give(second, 6)
    assert gpu.settle()
    assert gpu.starts() == {first.pk: 5, second.pk: 6}


def test_an_exchange_may_be_observed_one_after_the_other(gpu: DynamicGpu, tenant: TenantContext) -> None:
    first, second = gpu.book(tenant, 6), gpu.book(tenant, 5)
    gpu.give(first, 5)
    assert gpu.settle()
    assert gpu.starts() == {first.pk: 5, second.pk: 0}
    gpu.give(second, 6)
    assert gpu.settle()
    assert gpu.starts() == {first.pk: 5, second.pk: 6}


def test_allocations_of_several_sizes_change_places(gpu: DynamicGpu, tenant: TenantContext) -> None:
    half, small, other = gpu.book(tenant, 0, "3g.40gb"), gpu.book(tenant, 4), gpu.book(tenant, 6)
    gpu.give(half, 4)
    gpu.give(small, 0)
    gpu.give(other, 1)
    assert gpu.settle()
    assert gpu.starts() == {half.pk: 4, small.pk: 0, other.pk: 1}


def test_an_allocation_without_a_device_makes_room(gpu: DynamicGpu, tenant: TenantContext) -> None:
    first, waits = gpu.book(tenant, 6), gpu.book(tenant, 0, "3g.40gb")
    gpu.give(first, 0)
    gpu.give(waits)
    assert gpu.settle()
    assert gpu.starts() == {first.pk: 0, waits.pk: 4}
    assert reload_lease(waits).state == S.PROVISIONING


def test_placement_knows_the_new_places_at_once(gpu: DynamicGpu, tenant: TenantContext) -> None:
    lease = gpu.book(tenant, 3)
    gpu.give(lease, 0)
    with tenant_scope(tenant.tenant.pk), current_index() as stock:
        assert stock.gpus[gpu.gpu.pk].state.mask == 0b1000
    assert gpu.settle()
    with tenant_scope(tenant.tenant.pk), current_index() as stock:
        assert stock.gpus[gpu.gpu.pk].state.mask == 0b1


def test_a_lease_whose_place_is_taken_is_placed_elsewhere(sim: Simulation) -> None:
    create_gpus(2)
    tenant, gpu = create_tenant(), DynamicGpu(sim)
    third = gpu.book(tenant, 4, "2g.20gb", state=S.ACTIVE)
    first, waits = gpu.book(tenant, 6), gpu.book(tenant, 0, "3g.40gb")
    gpu.give(first, 3)
    gpu.give(third, 4)
    gpu.give(waits)
    assert not gpu.settle()
    lease = reload_lease(waits)
    assert lease.state == S.QUEUED
    assert transitions_of(lease)[-1].cause == SLICE_TAKEN
    assert gpu.starts() == {first.pk: 6, waits.pk: 0, third.pk: 4}, "its old place is held until proven empty"
    sim.run(20)
    assert [each.gpu_id for each in held_allocations(waits)] != [gpu.gpu.pk]
    assert state_path(waits).startswith("requested queued provisioning queued provisioning")
    assert Gpu.objects.sellable().count() == 2, "its node refused nothing"
    assert gpu.settle()
    assert gpu.starts() == {first.pk: 3, third.pk: 4}


@pytest.mark.parametrize("state", [S.ACTIVE, S.RELEASED])
def test_a_lease_that_has_begun_is_not_placed_elsewhere(
    gpu: DynamicGpu, tenant: TenantContext, state: LeaseState
) -> None:
    lease = gpu.sim.create_lease(tenant, offering("1g.10gb"), state)
    lease_reconciler.refuse_placement(lease.pk, lease.tenant_id, lease.generation, why=SLICE_TAKEN, now=gpu.sim.now)
    assert reload_lease(lease).state == state


@pytest.mark.parametrize("why", ["active", "abandoned", "relocation"])
def test_a_lease_that_must_stay_keeps_all_places(gpu: DynamicGpu, tenant: TenantContext, why: str) -> None:
    first = gpu.book(tenant, 6)
    stays = gpu.book(tenant, 0, "4g.40gb", state=S.ACTIVE if why == "active" else S.PROVISIONING)
    if why == "abandoned":
        update_allocation(stays, leaving_since=gpu.sim.now)
    elif why == "relocation":
        update_allocation(stays, is_relocation=True)
    gpu.give(first, 0)
    state = reload_lease(stays).state
    assert not gpu.settle()
    assert gpu.starts() == {first.pk: 6, stays.pk: 0}
    assert reload_lease(stays).state == state
    update_allocation(stays, released_at=gpu.sim.now)
    assert gpu.settle()
    assert gpu.starts() == {first.pk: 0}


@pytest.mark.parametrize("what", ["abandoned", "relocation"])
def test_abandoned_and_relocation_places_make_room(gpu: DynamicGpu, tenant: TenantContext, what: str) -> None:
    first, other = gpu.book(tenant, 6), gpu.book(tenant, 0)
    change = {"leaving_since": gpu.sim.now} if what == "abandoned" else {"is_relocation": True}
    update_allocation(other, **change)
    gpu.give(first, 0)
    assert gpu.settle()
    assert gpu.starts() == {first.pk: 0, other.pk: 1}


def test_a_place_is_held_since_its_last_holder_released_it(gpu: DynamicGpu, tenant: TenantContext) -> None:
    first, second = gpu.book(tenant, 0), gpu.book(tenant, 6)
    later = gpu.sim.now + timedelta(seconds=30)
    update_allocation(first, released_at=later)
    gpu.give(second, 0)
    assert gpu.settle()
    (held,) = held_allocations(second)
    assert (held.placement.lower, held.held_at) == (0, later)


def test_slices_of_a_gang_get_their_devices_in_order(gpu: DynamicGpu, tenant: TenantContext) -> None:
    gang = gpu.sim.create_lease(tenant, offering("1g.10gb"), S.PROVISIONING, quantity=2, same_node=True)
    gpu.give(gang, 4, 2)
    assert gpu.settle()
    assert sorted(each.placement.lower for each in held_allocations(gang)) == [2, 4]


def test_a_device_that_states_its_memory_slices_moves_nothing(gpu: DynamicGpu, tenant: TenantContext) -> None:
    lease = gpu.book(tenant, 6)
    row = ClusterObject.objects.get(kind="ResourceSlice")
    for device in row.body["spec"]["devices"]:
        counters = [name for each in device["consumesCounters"] for name in each["counters"]]
        units = [name.rpartition("-")[2] for name in counters if name.startswith("memory-slice-")]
        device["capacity"] |= {f"memorySlice{unit}": {"value": "1"} for unit in units}
    row.save()
    gpu.give(lease, 0)
    assert gpu.settle()
    assert gpu.starts() == {lease.pk: 6}


def test_a_device_of_another_gpu_or_profile_moves_nothing(sim: Simulation) -> None:
    create_gpus(2)
    tenant, gpu = create_tenant(), DynamicGpu(sim, count=2)
    lease = gpu.book(tenant, 6)
    gpu.give(lease, 0, gpu=gpu.gpus[1])
    assert gpu.settle()
    gpu.give(lease, 0, profile="2g.20gb")
    assert gpu.settle()
    assert gpu.starts() == {lease.pk: 6}


def test_a_device_that_is_not_published_yet_is_waited_for(gpu: DynamicGpu, tenant: TenantContext) -> None:
    lease = gpu.book(tenant, 6)
    gpu.store_claim(reload_lease(lease), ["gpu-0-mig-unheard-of"])
    assert not gpu.settle()
    assert (gpu.starts(), reload_lease(lease).state) == ({lease.pk: 6}, S.PROVISIONING)


def test_overlapping_devices_are_waited_for(gpu: DynamicGpu, tenant: TenantContext) -> None:
    """A list may show a device's new claim before its old one is known to be gone."""
    first, second = gpu.book(tenant, 6), gpu.book(tenant, 5)
    gpu.give(first, 0)
    gpu.give(second, 0)
    assert not gpu.settle()
    assert gpu.starts() == {first.pk: 6, second.pk: 5}


def test_an_unreadable_gpu_is_left_alone(gpu: DynamicGpu, tenant: TenantContext) -> None:
    lease = gpu.book(tenant, 6)
    update_allocation(lease, profile="9g.99gb")
    gpu.give(lease, 0)
    assert gpu.settle()
    assert gpu.starts() == {lease.pk: 6}


def test_a_node_without_leases_is_settled(gpu: DynamicGpu) -> None:
    assert gpu.settle()


def test_an_allocation_that_is_being_changed_is_waited_for(own_database: OwnDatabase) -> None:
    with simulate() as sim:
        create_gpus(1)
        gpu, tenant = DynamicGpu(sim), create_tenant()
        lease = gpu.book(tenant, 6)
        gpu.give(lease, 0)
        with psycopg.connect(own_database.owner_url) as other:
            other.execute("SELECT set_config('app.tenant', %s, true)", [lease.tenant_id])
            locked = other.execute("SELECT id FROM broker_allocation WHERE lease_id = %s FOR UPDATE", [lease.pk])
            assert locked.rowcount == 1
            assert not gpu.settle()
        assert gpu.starts() == {lease.pk: 6}
        assert gpu.settle()
        assert gpu.starts() == {lease.pk: 0}


def promise(gpu: DynamicGpu, start: int, size: int = 1) -> PromisedSlot:
    reclaim = SpotReclaim.objects.create(
        gpu_model_id=MODEL,
        region=REGION,
        waiting_lease=f"lse_{start}",
        noticed_at=gpu.sim.now,
        reclaim_at=gpu.sim.now,
        state_at=gpu.sim.now,
    )
    return PromisedSlot.objects.create(
        reclaim=reclaim,
        lease=f"lse_{start}",
        gpu=gpu.gpu,
        placement=NumericRange(start, start + size, "[)"),
        profile="1g.10gb",
        isolation="hardware",
    )


def promised_starts() -> dict[str, int]:
    return {each.lease: each.placement.lower for each in PromisedSlot.objects.all()}


def test_a_promised_slot_follows_the_lease_that_frees_it(gpu: DynamicGpu, tenant: TenantContext) -> None:
    first, second, waits = gpu.book(tenant, 6), gpu.book(tenant, 5), gpu.book(tenant, 0)
    for start in (6, 5):
        promise(gpu, start)
    gpu.give(first, 5)
    gpu.give(second, 0)
    assert gpu.settle()
    assert gpu.starts() == {first.pk: 5, second.pk: 0, waits.pk: 1}
    assert promised_starts() == {"lse_6": 5, "lse_5": 0}


def test_a_promise_of_several_leases_stays(gpu: DynamicGpu, tenant: TenantContext) -> None:
    first = gpu.book(tenant, 6)
    promise(gpu, 6)
    promise(gpu, 0, 2)
    gpu.give(first, 0)
    assert gpu.settle()
    assert gpu.starts() == {first.pk: 0}
    assert promised_starts() == {"lse_6": 6, "lse_0": 0}
