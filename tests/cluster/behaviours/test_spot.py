"""Spot leases are reclaimed by notice, on simulated and real clusters alike."""

from itertools import pairwise
from typing import Any

from billing.services.demo.seed import seed_prices
from billing.services.rating import lease_rating
from billing.services.reports import conservation
from broker.models import Lease, ReclaimNotice
from tenants.services.rls import system_scope
from tests.cluster.behaviours.world import World
from tests.controlplane.nodes import GpuNode
from tests.simulation import OPERATOR, held_allocations, reload_lease, state_path, transitions_of

NOTICE_S = 60


def notices() -> list[ReclaimNotice]:
    with system_scope():
        return list(ReclaimNotice.objects.order_by("noticed_at", "id"))


def test_four_of_eight_gpus_on_spot_and_a_request_for_five_starts_after_the_notice(world: World, settings: Any) -> None:
    settings.SPOT_NOTICE_S, settings.SPOT_MIN_RUNTIME_S = NOTICE_S, 0
    world.add_cluster(GpuNode(gpus=8))
    began = world.sim.now
    seed_prices.publish_list_prices(since=began.replace(hour=0, minute=0), actor=OPERATOR, now=began)
    swift, kestrel = world.add_tenant("Swift"), world.add_tenant("Kestrel")
    spot = world.offering(price_class="spot")
    running = []
    for _ in range(4):  # the last has lost least, so it gets the notice
        running.append(world.run(swift, spot, max_duration_s=7200))
        world.wait(20)
    gang = world.request_lease(kestrel, world.offering(), quantity=5, max_duration_s=7200)
    world.until_true(notices, "that a spot lease gets notice")
    (notice,) = notices()
    victim = next(lease for lease in running if lease.pk == notice.lease_id)
    slots = {place.gpu_id for place in held_allocations(victim)}
    assert reload_lease(gang).state == "queued"
    world.record(world.pending_reason(gang))
    world.wait(NOTICE_S + 1)
    world.until(victim, "released")
    world.until(gang, "active")
    assert slots < {place.gpu_id for place in held_allocations(gang)}
    ended = reload_lease(victim)
    assert (ended.end_reason, ended.ended_at) == ("preempted", notice.reclaim_at)
    world.record(state_path(victim))
    world.record(world.last_cause(victim, "releasing"))
    assert [reload_lease(lease).state for lease in running].count("active") == 3
    world.end(gang, *(lease for lease in running if lease != victim))
    assert_charged(world, began, victim)


def test_a_preempted_lease_is_queued_again_and_charged_once_per_second(world: World, settings: Any) -> None:
    settings.SPOT_NOTICE_S, settings.SPOT_MIN_RUNTIME_S = NOTICE_S, 0
    world.add_cluster(GpuNode(gpus=1))
    began = world.sim.now
    seed_prices.publish_list_prices(since=began.replace(hour=0, minute=0), actor=OPERATOR, now=began)
    swift, kestrel = world.add_tenant("Swift"), world.add_tenant("Kestrel")
    spot = world.offering(price_class="spot")
    lease = world.run(swift, spot, max_duration_s=7200, requeue_when_preempted=True)
    other = world.request_lease(kestrel, world.offering())
    world.until_true(notices, "that the spot lease gets notice")
    world.wait(NOTICE_S + 1)
    world.until(other, "active")
    world.until(lease, "queued")
    world.end(other)
    world.until(lease, "active")
    world.record(state_path(lease))
    world.end(lease)
    assert_charged(world, began, lease)


def assert_charged(world: World, began: Any, lease: Lease) -> None:
    """Check that every active second is charged, and that what is free at once is refunded."""
    lease_rating.rate_all_leases(now=world.sim.now)
    kept = conservation.check_conservation(first=began, last=world.sim.now)
    assert kept.active_unit_seconds > 0
    assert (kept.charged_minus_active, kept.active_without_place) == (0, 0)
    assert kept.unexplained == 0
    steps, ended = transitions_of(lease), reload_lease(lease)
    active = sum((b.at - a.at).total_seconds() for a, b in pairwise(steps) if a.after == "active")
    assert ended.active_at
    assert ended.ended_at
    assert active == ended.active_seconds + int((ended.ended_at - ended.active_at).total_seconds())
