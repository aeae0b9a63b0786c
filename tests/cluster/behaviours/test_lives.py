"""Release, expiry and extension of leases in every state."""

from datetime import timedelta

import pytest

from tests.cluster.behaviours.world import World
from tests.controlplane.nodes import GpuNode
from tests.simulation import reload_lease


@pytest.fixture(autouse=True)
def _one_gpu(world: World) -> None:
    world.add_cluster(GpuNode(gpus=1))


def test_a_lease_released_in_the_queue_creates_no_objects(world: World) -> None:
    kestrel, what = world.add_tenant(), world.offering()
    first = world.run(kestrel, what)
    waiting = world.request_lease(kestrel, what)
    world.end(waiting)
    world.until(first, "active")
    assert world.count_leases() == 1


def test_a_lease_released_during_its_image_pull_leaves_no_objects(world: World) -> None:
    lease = world.until(world.request_lease(world.add_tenant(), world.offering(), "endless"), "provisioning")
    world.until_true(world.count_leases, "something in the cluster")
    world.end(lease)
    assert world.count_leases() == 0


def test_a_lease_released_right_after_its_request_leaves_no_objects(world: World) -> None:
    world.end(world.request_lease(world.add_tenant(), world.offering()))
    assert world.count_leases() == 0


def test_a_lease_released_twice_ends_once(world: World) -> None:
    lease = world.run(world.add_tenant(), world.offering())
    world.release(lease)
    world.end(lease)


def test_an_ended_lease_cannot_be_released(world: World) -> None:
    lease = world.run(world.add_tenant(), world.offering())
    world.end(lease)
    assert world.refused(lambda: world.release(lease)).code == "already-over"


@pytest.mark.deep
def test_a_slowly_ending_lease_keeps_its_slot_until_it_is_gone(world: World) -> None:
    kestrel, what = world.add_tenant(), world.offering()
    first = world.run(kestrel, what, "takes its time to go")
    second = world.request_lease(kestrel, what)
    world.release(first)
    world.until(first, "releasing")
    world.run_briefly()
    assert (reload_lease(first).state, reload_lease(second).state) == ("releasing", "queued")
    world.until(first, "released")
    world.until(second, "active")


@pytest.mark.parametrize("state", ["queued", "provisioning", "active"])
def test_an_operator_can_end_a_lease_in_any_state(state: str, world: World) -> None:
    kestrel, what = world.add_tenant(), world.offering()
    if state == "queued":
        world.run(kestrel, what)
    lease = world.request_lease(kestrel, what, "endless" if state == "provisioning" else "runs")
    if state == "provisioning":
        world.until_true(lambda: world.progress(lease), "a first word of the cluster")
    elif state == "active":
        world.until(lease, state)
    world.evict(lease)
    assert world.until(lease, "released").end_reason == "by_operator"


def test_an_operator_cannot_end_a_lease_without_a_reason(world: World) -> None:
    lease = world.run(world.add_tenant(), world.offering())
    world.refused(lambda: world.evict(lease, why=" "))
    world.until(lease, "active")


def test_a_lease_expires_after_its_requested_duration(world: World) -> None:
    lease = world.run(world.add_tenant(), world.offering(), max_duration_s=600)
    world.wait(590)
    assert reload_lease(lease).state == "active"
    world.wait(15)
    assert world.until(lease, "released").end_reason == "expired"
    assert world.charged_seconds(lease) == 600


def test_an_earlier_end_date_overrides_the_duration(world: World) -> None:
    end = world.sim.now + timedelta(seconds=300)
    lease = world.run(world.add_tenant(), world.offering(), max_duration_s=3600, end_date=end)
    assert reload_lease(lease).ends_at == end
    lease_ends = reload_lease(lease).ends_at
    world.wait(310)
    world.until(lease, "released")
    assert reload_lease(lease).ended_at == lease_ends
    world.leases.clear()  # how long it lasted depends on how long its start took


def test_a_queued_lease_expires_at_its_end_date(world: World) -> None:
    kestrel, what = world.add_tenant(), world.offering()
    world.run(kestrel, what)
    waiting = world.request_lease(kestrel, what, end_date=world.sim.now + timedelta(seconds=120))
    world.wait(150)
    assert world.until(waiting, "released").end_reason == "expired"


def test_a_lease_expires_at_its_end_date_during_its_image_pull(world: World) -> None:
    end = world.sim.now + timedelta(seconds=100)
    lease = world.request_lease(world.add_tenant(), world.offering(), "endless", end_date=end)
    world.until_true(world.count_leases, "something in the cluster")
    world.wait(130)
    assert world.until(lease, "released").end_reason == "expired"
    assert world.count_leases() == 0


def test_a_lease_not_ready_in_time_ends_with_a_provision_timeout(world: World, settings: object) -> None:
    settings.PROVISION_TIMEOUT_S = 60  # type: ignore[attr-defined]
    lease = world.request_lease(world.add_tenant(), world.offering(), "endless")
    world.until_true(lambda: world.progress(lease), "a first word of the cluster")
    world.wait(70)
    assert world.until(lease, "released").end_reason == "provision_timeout"


@pytest.mark.deep
def test_the_duration_of_a_slowly_starting_lease_begins_when_it_is_active(world: World) -> None:
    lease = world.run(world.add_tenant(), world.offering(), "slow", max_duration_s=600)
    assert reload_lease(lease).ends_at == reload_lease(lease).active_at + timedelta(seconds=600)


@pytest.mark.deep
def test_an_extended_lease_expires_later(world: World) -> None:
    lease = world.run(world.add_tenant(), world.offering(), max_duration_s=600)
    world.extend(lease, 600)
    world.wait(700)
    assert reload_lease(lease).state == "active"
    world.wait(510)
    world.until(lease, "released")
    assert world.charged_seconds(lease) == 1200


def test_a_lease_extended_in_the_queue_gets_a_longer_duration(world: World) -> None:
    kestrel, what = world.add_tenant(), world.offering()
    first = world.run(kestrel, what)
    waiting = world.request_lease(kestrel, what, max_duration_s=600)
    world.extend(waiting, 300)
    world.end(first)
    assert world.until(waiting, "active").max_duration_s == 900


@pytest.mark.deep
def test_a_lease_can_be_extended_while_it_starts(world: World) -> None:
    lease = world.request_lease(world.add_tenant(), world.offering(), "slow", max_duration_s=600)
    world.until_true(world.count_leases, "something in the cluster")
    world.extend(lease, 60)
    world.until(lease, "active")


@pytest.mark.parametrize("more_s", [59, 10**7])
def test_an_invalid_extension_is_refused(more_s: int, world: World) -> None:
    lease = world.run(world.add_tenant(), world.offering())
    world.refused(lambda: world.extend(lease, more_s))


def test_an_ended_lease_cannot_be_extended(world: World) -> None:
    lease = world.run(world.add_tenant(), world.offering())
    world.end(lease)
    assert world.refused(lambda: world.extend(lease, 600)).code == "already-over"


def test_consecutive_leases_in_one_slot_leave_no_objects(world: World) -> None:
    kestrel, what = world.add_tenant(), world.offering()
    for _ in range(3):
        world.end(world.run(kestrel, what))
    assert world.count_leases() == 0
