"""Volumes that outlive leases, and leases that are stopped and started again."""

import pytest

from broker.models import Lease, Volume
from broker.services.volumes import volume_lifecycle
from tenants.models import QuotaKind
from tenants.services.rls import tenant_scope
from tests.cluster.behaviours.world import World
from tests.controlplane.nodes import GpuNode
from tests.simulation import TenantContext, held_allocations, reload_lease


def volume_of(world: World, owner: TenantContext) -> Volume:
    return world.sim.create_volume(owner, f"volume-{len(world.leases)}", size_gib=10)


def again(volume: Volume) -> Volume:
    with tenant_scope(volume.tenant_id):
        return Volume.objects.select_related("cluster", "project").get(pk=volume.pk)


def delete(world: World, owner: TenantContext, volume: Volume) -> None:
    with tenant_scope(owner.tenant.pk):
        volume_lifecycle.delete_volume(volume, actor=owner.actor, now=world.sim.now)


def stopped(world: World, owner: TenantContext, lease: Lease) -> Lease:
    world.sim.stop_lease(lease, owner)
    return world.until(lease, "stopped")


def test_a_stopped_lease_frees_its_gpu_and_waits_for_one_when_started(world: World) -> None:
    world.add_cluster(GpuNode(gpus=1))
    kestrel, what = world.add_tenant(), world.offering()
    first = world.run(kestrel, what, volume=volume_of(world, kestrel).pk)
    stopped(world, kestrel, first)
    assert held_allocations(first) == []
    world.record(f"stopped it holds {kestrel.quota_used(QuotaKind.UNITS)}, and {world.count_leases()} of it is there")
    other = world.run(kestrel, what)
    world.sim.start_lease(first, kestrel)
    world.run_briefly()
    assert "are in use" in world.pending_reason(first)
    world.end(other)
    assert world.until(first, "active").generation > 2


def test_a_volume_is_used_by_consecutive_leases_and_then_deleted(world: World) -> None:
    world.add_cluster(GpuNode(gpus=1))
    kestrel, what = world.add_tenant(), world.offering()
    volume = volume_of(world, kestrel)
    for _ in range(2):
        lease = world.run(kestrel, what, volume=volume.pk)
        world.names[volume.pk] = "<volume>"
        world.refused(lambda: world.request_lease(kestrel, what, volume=volume.pk))
        world.refused(lambda: delete(world, kestrel, volume))
        world.end(lease)
    delete(world, kestrel, volume)
    world.until_true(lambda: again(volume).state == "deleted", "that the volume is gone")
    world.record(f"room taken: {kestrel.quota_used(QuotaKind.STORAGE)} GiB")


def test_a_lease_is_stopped_and_started_many_times(world: World) -> None:
    world.add_cluster(GpuNode(gpus=1))
    kestrel = world.add_tenant()
    lease = world.run(kestrel, world.offering(), volume=volume_of(world, kestrel).pk)
    for _ in range(3):
        stopped(world, kestrel, lease)
        world.sim.start_lease(lease, kestrel)
        world.until(lease, "active")
    world.end(lease)


@pytest.mark.deep
def test_a_stopping_lease_can_be_released_and_its_volume_used_again(world: World) -> None:
    world.add_cluster(GpuNode(gpus=1))
    kestrel, what = world.add_tenant(), world.offering()
    volume = volume_of(world, kestrel)
    lease = world.run(kestrel, what, "takes its time to go", volume=volume.pk)
    world.sim.stop_lease(lease, kestrel)
    world.release(lease)
    world.until(lease, "released")
    world.run(kestrel, what, volume=volume.pk)


def test_a_released_stopped_lease_ends_at_once(world: World) -> None:
    world.add_cluster(GpuNode(gpus=1))
    kestrel = world.add_tenant()
    lease = stopped(world, kestrel, world.run(kestrel, world.offering(), volume=volume_of(world, kestrel).pk))
    world.release(lease)
    assert reload_lease(lease).state == "released"


def test_a_stop_or_start_that_is_not_possible_is_refused(world: World) -> None:
    world.add_cluster(GpuNode(gpus=1))
    kestrel, what = world.add_tenant(), world.offering()
    bare = world.run(kestrel, what)
    world.refused(lambda: world.sim.stop_lease(bare, kestrel))
    world.refused(lambda: world.sim.start_lease(bare, kestrel))
    waiting = world.request_lease(kestrel, what, volume=volume_of(world, kestrel).pk)
    world.refused(lambda: world.sim.stop_lease(waiting, kestrel))


@pytest.mark.deep
def test_a_volume_stays_in_one_cluster_and_its_lease_starts_only_there(world: World) -> None:
    first, second = world.add_cluster(GpuNode(gpus=1)), world.add_cluster(GpuNode(gpus=1))
    kestrel, what = world.add_tenant(), world.offering()
    volume = volume_of(world, kestrel)
    lease = world.run(kestrel, what, volume=volume.pk)
    here = again(volume).cluster
    assert here in (first.cluster, second.cluster)
    world.end(lease)
    lease = world.run(kestrel, what, volume=volume.pk)
    other = world.run(kestrel, what)
    assert world.host_of(lease) != world.host_of(other)
    assert again(volume).cluster == here
    stopped(world, kestrel, lease)
    third = world.run(kestrel, what)
    world.sim.start_lease(lease, kestrel)
    world.end(other)
    world.run_briefly()
    world.record(reload_lease(lease).state)  # there is room, but not where its volume lies
    world.end(third)
    world.until(lease, "active")
