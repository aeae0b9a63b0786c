"""Lost nodes, GPUs and pods, and the leases on them."""

from datetime import timedelta

import pytest

from broker.models import NodeState
from broker.services.clusters.registration import cluster_registration
from broker.services.inventory import hardware
from tests.cluster.behaviours.world import World
from tests.controlplane.nodes import GpuNode
from tests.simulation import OPERATOR, reload_lease


@pytest.fixture
def short_silence(settings: object) -> None:
    """Give leases of silent nodes up after 30 s."""
    settings.NODE_UNREACHABLE_TIMEOUT_S = 30  # type: ignore[attr-defined]


def test_a_lease_keeps_its_node_over_a_reboot_of_two_minutes(world: World) -> None:
    site = world.add_cluster(GpuNode(gpus=1))
    lease = world.run(world.add_tenant(), world.offering())
    generation, end = lease.generation, lease.ends_at
    world.lose_node(site.hosts[0])
    world.wait(120)
    assert "If the node is not back by" in reload_lease(lease).conditions["unreachable"]
    world.recover_node(site.hosts[0])
    world.until_true(lambda: not reload_lease(lease).conditions, "that it runs again")
    again = reload_lease(lease)
    assert (again.state, again.generation) == ("active", generation)
    assert again.ends_at is not None
    assert end is not None
    assert again.ends_at - end >= timedelta(seconds=110), "it gets the time that it lost"
    world.release(lease)
    assert world.charged_seconds(world.until(lease, "released")) <= 60, "not for the reboot"


def test_a_briefly_lost_node_sets_a_condition_and_ends_no_lease(world: World) -> None:
    site = world.add_cluster(GpuNode(gpus=1), GpuNode(gpus=1))
    lease = world.run(world.add_tenant(), world.offering(), quantity=2)
    world.lose_node(site.hosts[0])
    world.until_true(lambda: "unreachable" in reload_lease(lease).conditions, "a word about its node")
    world.recover_node(site.hosts[0])
    world.until_true(lambda: not reload_lease(lease).conditions, "that it is well again")
    assert reload_lease(lease).state == "active"


@pytest.mark.usefixtures("short_silence")
def test_a_permanently_lost_node_ends_its_leases_when_they_were_last_seen(world: World) -> None:
    site = world.add_cluster(GpuNode(gpus=2))
    kestrel, what = world.add_tenant(), world.offering()
    leases = [world.request_lease(kestrel, what) for _ in range(2)]
    world.until_all(leases, "active")
    lost_at = world.sim.now
    world.lose_node(site.hosts[0])
    world.run_briefly()
    world.wait(45)
    for lease in world.until_all(leases, "released"):
        assert lease.end_reason == "device_lost"
        assert lease.ended_at is not None
        assert lease.ended_at <= lost_at + timedelta(seconds=1)
        assert "is unreachable" in world.last_cause(lease, "releasing")


@pytest.mark.usefixtures("short_silence")
def test_a_lease_of_a_lost_node_can_be_requested_again_on_another(world: World) -> None:
    site = world.add_cluster(GpuNode(gpus=1), GpuNode(gpus=1))
    kestrel, what = world.add_tenant(), world.offering()
    lease = world.run(kestrel, what)
    host = world.host_of(lease)
    world.lose_node(host)
    world.run_briefly()
    world.wait(45)
    world.until(lease, "released")
    again = world.run(kestrel, what)
    assert world.host_of(again) in set(site.hosts) - {host}


@pytest.mark.deep
def test_a_lease_starting_on_a_lost_node_starts_on_another_node(world: World) -> None:
    site = world.add_cluster(GpuNode(gpus=1), GpuNode(gpus=1))
    lease = world.request_lease(world.add_tenant(), world.offering(), "slow")
    world.until_true(world.count_leases, "something in the cluster")
    first, first_try = world.host_of(lease), reload_lease(lease).generation
    world.lose_node(first)
    lease = world.until(lease, "active")
    assert world.host_of(lease) in set(site.hosts) - {first}
    assert lease.generation == first_try + 1
    world.recover_node(first)
    world.until_true(lambda: world.count_leases() == 1, "that it is only where it went")


@pytest.mark.usefixtures("short_silence")
def test_a_lost_node_does_not_affect_leases_on_other_nodes(world: World) -> None:
    site = world.add_cluster(GpuNode(gpus=1), GpuNode(gpus=1))
    kestrel, what = world.add_tenant(), world.offering()
    leases = [world.request_lease(kestrel, what) for _ in range(2)]
    world.until_all(leases, "active")
    lost = world.host_of(leases[0])
    assert lost in site.hosts
    world.lose_node(lost)
    world.run_briefly()
    world.wait(45)
    world.until(leases[0], "released")
    world.until(leases[1], "active")


@pytest.mark.usefixtures("short_silence")
def test_a_gang_is_lost_with_any_of_its_nodes(world: World) -> None:
    site = world.add_cluster(GpuNode(gpus=1), GpuNode(gpus=1))
    lease = world.run(world.add_tenant(), world.offering(), quantity=2)
    world.lose_node(site.hosts[1])
    world.run_briefly()
    world.wait(45)
    assert world.until(lease, "released").end_reason == "device_lost"


@pytest.mark.usefixtures("short_silence")
def test_a_recovered_node_takes_leases_again(world: World) -> None:
    site = world.add_cluster(GpuNode(gpus=1))
    kestrel, what = world.add_tenant(), world.offering()
    lease = world.run(kestrel, what)
    world.lose_node(site.hosts[0])
    world.run_briefly()
    world.wait(45)
    world.until(lease, "released")
    waiting = world.request_lease(kestrel, what)
    world.recover_node(site.hosts[0])
    world.until(waiting, "active")


def test_a_cordoned_node_that_reboots_stays_cordoned(world: World) -> None:
    site = world.add_cluster(GpuNode(gpus=1))
    (node,) = site.nodes
    hardware.set_node_state(node, NodeState.CORDONED, reason="repair", actor=OPERATOR, now=world.sim.now)
    world.lose_node(site.hosts[0])
    world.wait(30)
    world.recover_node(site.hosts[0])
    waiting = world.request_lease(world.add_tenant(), world.offering())
    world.wait(30)
    node.refresh_from_db()
    assert (node.state, reload_lease(waiting).state) == ("cordoned", "queued")
    hardware.set_node_state(node, NodeState.READY, reason="repaired", actor=OPERATOR, now=world.sim.now)
    world.until(waiting, "active")


def test_a_node_that_reports_fewer_gpus_takes_no_further_leases(world: World) -> None:
    site = world.add_cluster(GpuNode(gpus=2))
    kestrel, what = world.add_tenant(), world.offering()
    world.set_gpu_count(site, site.hosts[0], 1)
    first = world.run(kestrel, what)
    second = world.request_lease(kestrel, what)
    world.wait(30)
    assert reload_lease(second).state == "queued"
    world.set_gpu_count(site, site.hosts[0], 2)
    world.until_all([first, second], "active")


def test_a_node_that_reports_no_gpus_takes_no_leases(world: World) -> None:
    site = world.add_cluster(GpuNode(gpus=2))
    world.set_gpu_count(site, site.hosts[0], 0)
    waiting = world.request_lease(world.add_tenant(), world.offering())
    world.wait(30)
    world.record(world.pending_reason(waiting))
    world.set_gpu_count(site, site.hosts[0], 2)
    world.until(waiting, "active")


def test_a_lease_whose_image_cannot_be_pulled_ends_free_of_charge(world: World) -> None:
    world.add_cluster(GpuNode(gpus=1))
    lease = world.request_lease(world.add_tenant(), world.offering(), "never pulls")
    world.fail_image_pull(lease)
    lease = world.until(lease, "released")
    assert (lease.end_reason, lease.active_at) == ("spec_refused", None)


def test_the_slot_of_a_lease_whose_image_cannot_be_pulled_is_reused(world: World) -> None:
    world.add_cluster(GpuNode(gpus=1))
    kestrel, what = world.add_tenant(), world.offering()
    first = world.request_lease(kestrel, what, "never pulls")
    second = world.request_lease(kestrel, what)
    world.fail_image_pull(first)
    world.until(first, "released")
    world.until(second, "active")


def test_an_evicted_pod_is_replaced_and_its_lease_stays_active(world: World) -> None:
    world.add_cluster(GpuNode(gpus=1))
    lease = world.run(world.add_tenant(), world.offering())
    world.evict_pod(lease)
    world.wait(20)
    world.until_true(lambda: world.is_ready(lease), "that it is ready again")
    world.until(lease, "active")


def test_a_manually_edited_object_is_repaired_and_its_lease_stays_active(world: World) -> None:
    world.add_cluster(GpuNode(gpus=1))
    lease = world.run(world.add_tenant(), world.offering())
    world.edit_objects(lease)
    world.wait(20)
    world.until_true(lambda: world.is_ready(lease), "that it is ready again")
    world.until(lease, "active")


def test_an_empty_inventory_is_ignored(world: World) -> None:
    site = world.add_cluster(GpuNode(gpus=6), GpuNode(gpus=6))
    kestrel, what = world.add_tenant(), world.offering()
    lease = world.run(kestrel, what)
    for why in cluster_registration.update_inventory(site.cluster, [], now=world.sim.now):
        world.record(why)
    world.wait(60)
    world.until(lease, "active")
    world.run(kestrel, what)


@pytest.mark.parametrize("reason", ["PreemptionByScheduler", "Evicted"])
def test_an_evicted_pod_ends_its_lease_as_device_lost(reason: str, world: World) -> None:
    world.add_cluster(GpuNode(gpus=1))
    lease = world.run(world.add_tenant(), world.offering())
    world.end_pod(lease, reason)
    world.run_briefly()
    world.wait(45)
    lease = world.until(lease, "releasing")
    assert lease.end_reason == "device_lost"
    world.unblock_deletions()
    world.until(lease, "released")


def test_manually_deleted_objects_end_their_lease(world: World) -> None:
    world.add_cluster(GpuNode(gpus=1))
    lease = world.run(world.add_tenant(), world.offering())
    world.delete_all_of(lease)
    assert world.until(lease, "released").end_reason == "device_lost"


def test_a_lease_deleted_unobserved_is_charged_until_its_deletion(world: World) -> None:
    world.add_cluster(GpuNode(gpus=1))
    lease = world.run(world.add_tenant(), world.offering())
    deleted_at = world.sim.now
    world.delete_all_of(lease)
    world.run_without_workers(1800)
    lease = world.until(lease, "released")
    assert lease.end_reason == "device_lost"
    assert lease.ended_at is not None
    assert abs(lease.ended_at - deleted_at) <= timedelta(seconds=30), "and not to half an hour later"


def test_a_batch_job_that_ended_unobserved_is_charged_for_its_run_time_only(world: World) -> None:
    world.add_cluster(GpuNode(gpus=1))
    lease = world.run(world.add_tenant(), world.offering(), "is done", workload="batch", command="train")
    world.run_without_workers(1800)
    lease = world.until(lease, "released")
    assert world.charged_seconds(lease) <= 35, "not for the half hour in which nobody looked"
    world.record(world.last_cause(lease, "releasing"))


def test_the_slot_of_manually_deleted_objects_is_reused(world: World) -> None:
    world.add_cluster(GpuNode(gpus=1))
    kestrel, what = world.add_tenant(), world.offering()
    lease = world.run(kestrel, what)
    world.delete_all_of(lease)
    world.until(lease, "released")
    world.run(kestrel, what)


@pytest.mark.deep
def test_a_manually_deleted_namespace_ends_its_leases_and_is_created_again(world: World) -> None:
    world.add_cluster(GpuNode(gpus=1))
    kestrel, what = world.add_tenant(), world.offering()
    lease = world.run(kestrel, what)
    world.delete_namespace(kestrel)
    assert world.until(lease, "released").end_reason == "device_lost"
    world.run(kestrel, what)


def test_a_pod_held_by_a_finalizer_keeps_its_slot_until_it_is_deleted(world: World) -> None:
    world.add_cluster(GpuNode(gpus=1))
    kestrel, what = world.add_tenant(), world.offering()
    lease, waiting = world.run(kestrel, what), world.request_lease(kestrel, what)
    let_go = world.block_deletion(lease)
    world.release(lease)
    world.wait(900)
    assert (reload_lease(lease).state, reload_lease(waiting).state) == ("releasing", "queued")
    let_go()
    world.until(lease, "released")
    world.until(waiting, "active")


def test_a_foreign_object_with_a_leases_name_is_kept_and_the_lease_refused(world: World) -> None:
    world.add_cluster(GpuNode(gpus=2))
    kestrel, what = world.add_tenant(), world.offering()
    world.run(kestrel, what)
    lease = world.request_lease(kestrel, what)
    world.create_foreign_object(lease)
    lease = world.until(lease, "released")
    assert lease.end_reason == "spec_refused"
    world.record(world.last_cause(lease, "releasing"))
