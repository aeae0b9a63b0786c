"""Leases on a failing, silent or frozen cluster."""

from datetime import timedelta

import pytest

from broker.models import Lease
from broker.services.clusters import orphan_removal
from broker.services.clusters.health import cluster_freeze
from broker.services.reconciler import lease_reconciler, missing_leases
from tests.cluster.behaviours.world import World
from tests.controlplane.nodes import GpuNode
from tests.simulation import OPERATOR, reload_lease

MANY = 10**6
DENIED = ["401", "403"]


@pytest.mark.parametrize("answer", ["409 on apply", "429", "503"])
def test_a_transient_refusal_at_start_is_retried(answer: str, world: World) -> None:
    world.add_cluster(GpuNode(gpus=1), fragile=True)
    lease = world.request_lease(world.add_tenant(), world.offering())
    world.inject_fault(answer, times=1)
    world.until(lease, "active")
    assert world.count_leases() == 1
    world.end(lease)


@pytest.mark.parametrize("answer", ["409 on delete", "429", "503"])
def test_a_transient_refusal_at_release_is_retried(answer: str, world: World) -> None:
    world.add_cluster(GpuNode(gpus=1), fragile=True)
    lease = world.run(world.add_tenant(), world.offering())
    world.inject_fault(answer, times=1)
    world.end(lease)
    assert world.count_leases() == 0


def test_a_lease_refused_by_the_clusters_quota_waits_until_there_is_room(world: World) -> None:
    world.add_cluster(GpuNode(gpus=1), fragile=True)
    over = world.inject_fault("403 quota", times=MANY)
    lease = world.request_lease(world.add_tenant(), world.offering())
    world.until_true(lambda: "quota" in world.progress(lease), "words about the quota")
    world.record(world.progress(lease))
    over()
    world.until(lease, "active")


def test_a_spec_refused_by_the_cluster_ends_its_lease_with_the_message(world: World) -> None:
    world.add_cluster(GpuNode(gpus=1), fragile=True)
    over = world.inject_fault("422", times=MANY)
    lease = world.request_lease(world.add_tenant(), world.offering())
    world.until_true(lambda: reload_lease(lease).end_reason == "spec_refused", "that it was refused")
    over()
    lease = world.until(lease, "released")
    world.record(world.last_cause(lease, "releasing"))
    assert lease.active_at is None


@pytest.mark.parametrize("answer", DENIED)
def test_revoked_cluster_rights_end_no_lease(answer: str, world: World) -> None:
    world.add_cluster(GpuNode(gpus=1), fragile=True)
    lease = world.run(world.add_tenant(), world.offering())
    over = world.inject_fault(answer, times=MANY)
    world.wait(260)
    assert reload_lease(lease).state == "active"
    assert "denies" in world.progress(lease)
    over()
    world.until_true(lambda: world.is_ready(lease), "that it is ready again")


@pytest.mark.parametrize("answer", [*DENIED, "silence"])
def test_a_lease_released_during_an_outage_keeps_its_slot_until_proven_ended(answer: str, world: World) -> None:
    world.add_cluster(GpuNode(gpus=1), fragile=True)
    kestrel, what = world.add_tenant(), world.offering()
    lease, waiting = world.run(kestrel, what), world.request_lease(kestrel, what)
    over = world.inject_fault(answer, times=MANY)
    world.release(lease)
    world.wait(300)
    assert (reload_lease(lease).state, reload_lease(waiting).state) == ("releasing", "queued")
    over()
    world.wait(30)
    world.until(lease, "released")
    world.until(waiting, "active")


def test_a_lease_on_a_cluster_that_never_answers_starts_on_another_cluster(world: World) -> None:
    world.add_cluster(GpuNode(gpus=1), fragile=True)
    over = world.inject_fault("silence", times=MANY)
    lease = world.request_lease(world.add_tenant(), world.offering())
    world.run_briefly()
    first_try = reload_lease(lease).generation
    world.add_cluster(GpuNode(gpus=1))
    world.wait(50)
    assert world.until(lease, "active").generation == first_try + 1
    over()


def test_a_short_outage_sets_no_condition(world: World) -> None:
    world.add_cluster(GpuNode(gpus=1), fragile=True)
    lease = world.run(world.add_tenant(), world.offering())
    over = world.inject_fault("silence", times=MANY)
    world.wait(60)
    over()
    world.until_true(lambda: world.is_ready(lease), "that it is ready again")
    assert reload_lease(lease).conditions == {}


def test_a_long_outage_sets_and_clears_the_condition(world: World) -> None:
    world.add_cluster(GpuNode(gpus=1), fragile=True)
    lease = world.run(world.add_tenant(), world.offering(), max_duration_s=5 * 3600)
    over = world.inject_fault("silence", times=MANY)
    world.wait(600)
    world.until_true(lambda: "unreachable" in reload_lease(lease).conditions, "a word about the silence")
    over()
    world.until_true(lambda: not reload_lease(lease).conditions, "that it is well again")


def test_a_lease_that_expires_in_a_long_outage_is_charged_until_last_seen(world: World) -> None:
    world.add_cluster(GpuNode(gpus=1), fragile=True)
    lease = world.run(world.add_tenant(), world.offering(), max_duration_s=3600)
    over = world.inject_fault("silence", times=MANY)
    unreachable_since = world.sim.now
    world.wait(4 * 3600)
    lease = world.until(lease, "releasing")
    assert lease.ended_at is not None
    assert lease.ended_at <= unreachable_since + timedelta(seconds=1)
    over()
    world.until(lease, "released")


def test_a_frozen_cluster_changes_no_lease_until_it_is_unfrozen(world: World) -> None:
    site = world.add_cluster(GpuNode(gpus=1))
    kestrel, what = world.add_tenant(), world.offering()
    lease = world.run(kestrel, what)
    cluster_freeze.freeze_cluster(site.cluster.pk, "its versions fell back")
    waiting = world.request_lease(kestrel, what)
    world.release(lease)
    world.wait(120)
    assert (reload_lease(lease).state, reload_lease(waiting).state) == ("releasing", "queued")
    assert world.count_leases() == 1
    site.cluster.refresh_from_db()
    cluster_freeze.unfreeze_cluster(site.cluster, why="looked at it", actor=OPERATOR, now=world.sim.now)
    world.until(lease, "released")
    world.until(waiting, "active")


def test_the_lease_of_a_killed_worker_is_started_by_the_next_worker(world: World) -> None:
    world.add_cluster(GpuNode(gpus=1))
    lease = world.request_lease(world.add_tenant(), world.offering())
    world.kill_worker_during_start(lease)
    world.wait(25)
    assert world.until(lease, "active").unfinished_claims == 0
    assert world.count_leases() == 1


def test_one_empty_observation_of_a_cluster_ends_no_lease(world: World) -> None:
    world.add_cluster(GpuNode(gpus=2), fragile=True)
    leases = run(world, 2)
    over = world.inject_fault("nothing there", times=MANY)
    lease_reconciler.check_active_leases(now=world.sim.now)
    assert {world.progress(each) for each in leases} == {missing_leases.PROGRESS_TEXT}
    over()
    for each in leases:
        world.until_true(lambda each=each: not world.progress(each), "that it is well again")
    assert {reload_lease(each).state for each in leases} == {"active"}


@pytest.mark.deep
def test_many_missing_leases_end_only_when_confirmed_and_when_last_seen(
    world: World,
) -> None:
    """Look until the missing leases are confirmed as gone."""
    world.add_cluster(GpuNode(gpus=missing_leases.ALWAYS_ALLOWED + 1), fragile=True)
    leases = run(world, missing_leases.ALWAYS_ALLOWED + 1)
    over = world.inject_fault("nothing there", times=MANY)
    lease_reconciler.check_active_leases(now=world.sim.now)
    for _ in range(3):  # nobody sleeps longer than a look says something
        world.wait(20)
    assert {reload_lease(each).state for each in leases} == {"active"}
    assert all("unreachable" in reload_lease(each).conditions for each in leases)
    over()
    for each in leases:
        world.until_true(lambda each=each: not reload_lease(each).conditions, "that it is well again")
    over = world.inject_fault("nothing there", times=MANY)
    gone_since = world.sim.now
    lease_reconciler.check_active_leases(now=gone_since)
    for _ in range(24):  # a machine that dawdles between two of them must not make a look too old to count
        world.wait(30)
    over()
    for each in leases:
        ended = world.until(each, "released")
        assert ended.end_reason == "device_lost"
        assert ended.ended_at is not None
        assert ended.ended_at <= gone_since + timedelta(seconds=1)
    orphan_removal.remove_orphans(now=world.sim.now)  # what was there all along
    world.until_true(lambda: world.count_leases() == 0, "that nothing of them is left")


def run(world: World, count: int) -> list[Lease]:
    """Run this many leases, one GPU each."""
    owner, what = world.add_tenant(), world.offering()
    leases = [world.request_lease(owner, what) for _ in range(count)]
    world.until_all(leases, "active")
    return leases
