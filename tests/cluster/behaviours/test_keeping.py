"""Volumes that outlive leases, and leases that are stopped and started again."""

from broker.models import Lease, Volume
from broker.services.volumes import keeping
from tenants.models import QuotaKind
from tenants.services.walls import as_tenant
from tests.cluster.behaviours.world import World
from tests.controlplane.nodes import GpuNode
from tests.world import Home, fresh, held


def volume_of(world: World, owner: Home) -> Volume:
    return world.life.volume(owner, f"volume-{len(world.leases)}", size_gib=10)


def again(volume: Volume) -> Volume:
    with as_tenant(volume.tenant_id):
        return Volume.objects.select_related("cluster", "project").get(pk=volume.pk)


def delete(world: World, owner: Home, volume: Volume) -> None:
    with as_tenant(owner.tenant.pk):
        keeping.delete(volume, actor=owner.actor, now=world.life.now)


def stopped(world: World, owner: Home, lease: Lease) -> Lease:
    world.life.stop(lease, owner)
    return world.until(lease, "stopped")


def test_stopped_it_leaves_its_card_to_others_and_started_it_waits_for_one(world: World) -> None:
    world.stand(GpuNode(cards=1))
    kestrel, what = world.home(), world.offering()
    first = world.run(kestrel, what, volume=volume_of(world, kestrel).pk)
    stopped(world, kestrel, first)
    assert held(first) == []
    world.note(f"stopped it holds {kestrel.used(QuotaKind.UNITS)}, and {world.there()} of it is there")
    other = world.run(kestrel, what)
    world.life.start(first, kestrel)
    world.soon()
    assert "is taken" in world.waits(first)
    world.end(other)
    assert world.until(first, "active").generation > 2


def test_a_volume_is_used_by_one_lease_after_the_other_and_then_deleted(world: World) -> None:
    world.stand(GpuNode(cards=1))
    kestrel, what = world.home(), world.offering()
    volume = volume_of(world, kestrel)
    for _ in range(2):
        lease = world.run(kestrel, what, volume=volume.pk)
        world.names[volume.pk] = "<volume>"
        world.refused(lambda: world.ask(kestrel, what, volume=volume.pk))
        world.refused(lambda: delete(world, kestrel, volume))
        world.end(lease)
    delete(world, kestrel, volume)
    world.until_true(lambda: again(volume).state == "deleted", "that the volume is gone")
    world.note(f"room taken: {kestrel.used(QuotaKind.STORAGE)} GiB")


def test_a_lease_is_stopped_and_started_many_times(world: World) -> None:
    world.stand(GpuNode(cards=1))
    kestrel = world.home()
    lease = world.run(kestrel, world.offering(), volume=volume_of(world, kestrel).pk)
    for _ in range(3):
        stopped(world, kestrel, lease)
        world.life.start(lease, kestrel)
        world.until(lease, "active")
    world.end(lease)


def test_what_is_being_stopped_can_be_released_and_its_volume_used_again(world: World) -> None:
    world.stand(GpuNode(cards=1))
    kestrel, what = world.home(), world.offering()
    volume = volume_of(world, kestrel)
    lease = world.run(kestrel, what, "takes its time to go", volume=volume.pk)
    world.life.stop(lease, kestrel)
    world.release(lease)
    world.until(lease, "released")
    world.run(kestrel, what, volume=volume.pk)


def test_a_stopped_lease_that_is_released_is_over_at_once(world: World) -> None:
    world.stand(GpuNode(cards=1))
    kestrel = world.home()
    lease = stopped(world, kestrel, world.run(kestrel, world.offering(), volume=volume_of(world, kestrel).pk))
    world.release(lease)
    assert fresh(lease).state == "released"


def test_what_cannot_be_stopped_or_started_is_told_why(world: World) -> None:
    world.stand(GpuNode(cards=1))
    kestrel, what = world.home(), world.offering()
    bare = world.run(kestrel, what)
    world.refused(lambda: world.life.stop(bare, kestrel))
    world.refused(lambda: world.life.start(bare, kestrel))
    waiting = world.ask(kestrel, what, volume=volume_of(world, kestrel).pk)
    world.refused(lambda: world.life.stop(waiting, kestrel))


def test_a_volume_lies_in_one_cluster_for_good(world: World) -> None:
    first, second = world.stand(GpuNode(cards=1)), world.stand(GpuNode(cards=1))
    kestrel, what = world.home(), world.offering()
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
    world.life.start(lease, kestrel)
    world.end(other)
    world.soon()
    world.note(fresh(lease).state)  # there is room, but not where its volume lies
    world.end(third)
    world.until(lease, "active")
