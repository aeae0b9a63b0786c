"""Spot leases are reclaimed by notice for on-demand requests."""

from datetime import timedelta
from typing import Any

import pytest

from broker.models import Lease, PromisedSlot, ReclaimNotice, SpotReclaim
from tenants.services.rls import system_scope
from tests.simulation import (
    Simulation,
    TenantContext,
    create_gpus,
    create_tenant,
    held_allocations,
    offering,
    reload_lease,
    transitions_of,
)

NOTICE = timedelta(minutes=5)
PAST_MINIMUM = timedelta(minutes=10, seconds=1)


def spot(profile: str = "whole-gpu") -> Any:
    return offering(profile, price_class="spot")


def slots_of(lease: Lease) -> set[tuple[str, int]]:
    return {(place.gpu_id, place.placement.lower) for place in held_allocations(lease)}


def notices() -> list[ReclaimNotice]:
    with system_scope():
        return list(ReclaimNotice.objects.order_by("id"))


@pytest.fixture
def swift(sim: Simulation) -> TenantContext:
    create_gpus(8)
    return create_tenant("Swift")


@pytest.fixture
def four_of_eight(sim: Simulation, swift: TenantContext) -> list[Lease]:
    """Rent four of eight GPUs as spot, for longer than the minimum runtime."""
    leases = [sim.create_lease(swift, spot(), max_duration_s=8 * 3600) for _ in range(4)]
    sim.clock.at += PAST_MINIMUM
    return leases


def test_an_on_demand_request_for_five_of_eight_starts_after_the_notice_of_a_spot_lease(
    sim: Simulation, four_of_eight: list[Lease]
) -> None:
    kestrel = create_tenant("Kestrel")
    gang = sim.request_lease(kestrel, offering("whole-gpu"), quantity=5)
    sim.run()
    began = sim.now
    (notice,) = notices()
    assert notice.reclaim_at - began >= NOTICE
    victim = next(lease for lease in four_of_eight if lease.pk == notice.lease_id)
    held = slots_of(victim)
    sim.run_with_sweeps(295)
    assert [reload_lease(lease).state for lease in (gang, *four_of_eight)] == ["queued", *["active"] * 4]
    assert reload_lease(gang).pending_reason.startswith("Starts after ")
    sim.run_with_sweeps(20)
    ended = reload_lease(victim)
    assert (ended.state, ended.end_reason, ended.ended_at) == ("released", "preempted", notice.reclaim_at)
    gang = reload_lease(gang)
    assert gang.state == "active"
    assert gang.active_at is not None
    assert gang.active_at - notice.reclaim_at < timedelta(seconds=15)
    assert held < slots_of(gang)
    assert [reload_lease(lease).state for lease in four_of_eight].count("active") == 3
    assert SpotReclaim.objects.get().state == "done"
    assert not PromisedSlot.objects.exists()
    assert [step.reason for step in transitions_of(victim) if step.after == "releasing"] == ["preempted"]
