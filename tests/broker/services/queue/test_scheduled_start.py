"""Leases that start at a given time: queued before, placed from then on."""

from datetime import timedelta

import pytest

from broker.domain.lifecycle.states import LeaseState
from broker.services.leases.lifecycle import extension, termination
from tenants.models import QuotaKind
from tenants.services.errors import InvalidValue
from tenants.services.rls import tenant_scope
from tests.simulation import Simulation, TenantContext, create_gpus, create_tenant, offering, reload_lease

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


@pytest.fixture
def kestrel(sim: Simulation) -> TenantContext:
    create_gpus(1)
    return create_tenant("Kestrel")


def watch(sim: Simulation, seconds: int) -> None:
    """Let time pass with the beat sweeping twice a minute."""
    for _ in range(-(-seconds // 30)):
        sim.run(30)
        sim.sweep()


def test_a_lease_is_placed_from_its_start_on(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.request_lease(kestrel, offering(), starts_at=sim.now + HOUR)
    watch(sim, 3570)
    waiting = reload_lease(lease)
    assert (waiting.state, waiting.pending_reason) == ("queued", "Starts at 2026-11-21 10:00 UTC, as requested.")
    watch(sim, 60)
    started = reload_lease(lease)
    assert (started.state, started.pending_reason) == (LeaseState.ACTIVE, "")
    assert started.active_at
    assert timedelta(0) <= started.active_at - lease.created_at - HOUR < timedelta(seconds=45)


def test_a_scheduled_lease_blocks_nobody_before_its_start(sim: Simulation, kestrel: TenantContext) -> None:
    scheduled = sim.request_lease(kestrel, offering("whole-gpu"), starts_at=sim.now + HOUR)
    other = sim.create_lease(kestrel, offering("whole-gpu"), max_duration_s=2 * 3600)
    watch(sim, 3700)
    assert reload_lease(other).state == LeaseState.ACTIVE
    assert "free" in reload_lease(scheduled).pending_reason.lower()
    watch(sim, 3700)
    assert reload_lease(scheduled).state == LeaseState.ACTIVE


def test_a_scheduled_lease_queues_behind_those_that_wait_at_its_start(sim: Simulation, kestrel: TenantContext) -> None:
    holder = sim.create_lease(kestrel, offering("whole-gpu"), max_duration_s=2 * 3600)
    scheduled = sim.request_lease(kestrel, offering("whole-gpu"), starts_at=sim.now + HOUR)
    watch(sim, 1800)
    earlier = sim.request_lease(kestrel, offering("whole-gpu"))
    watch(sim, 1850)
    sim.release_lease(holder)
    watch(sim, 60)
    assert (reload_lease(earlier).state, reload_lease(scheduled).state) == ("active", "queued")


def test_a_scheduled_lease_is_cancelled_for_free(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.request_lease(kestrel, offering(), starts_at=sim.now + HOUR)
    assert kestrel.quota_used() > 0
    with tenant_scope(kestrel.tenant.pk):
        termination.release_lease(reload_lease(lease), reason=termination.EndReason.BY_TENANT, now=sim.now)
    assert reload_lease(lease).state == LeaseState.RELEASED
    assert kestrel.quota_used(QuotaKind.UNITS) == 0


def test_an_extended_scheduled_lease_keeps_its_start(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.request_lease(kestrel, offering(), starts_at=sim.now + HOUR)
    with tenant_scope(kestrel.tenant.pk):
        extension.extend_lease(lease, more_s=3600, actor=kestrel.actor, now=sim.now)
    watch(sim, 1800)
    assert reload_lease(lease).state == LeaseState.QUEUED
    watch(sim, 1900)
    assert reload_lease(lease).state == LeaseState.ACTIVE


@pytest.mark.parametrize("ahead", [timedelta(0), timedelta(hours=-1), timedelta(days=31)])
def test_a_start_in_the_past_or_far_ahead_is_refused(sim: Simulation, kestrel: TenantContext, ahead: timedelta) -> None:
    with pytest.raises(InvalidValue, match="at most 30 days ahead"):
        sim.request_lease(kestrel, offering(), starts_at=sim.now + ahead)


def test_an_end_before_the_start_is_refused(sim: Simulation, kestrel: TenantContext) -> None:
    with pytest.raises(InvalidValue, match="end date is too early"):
        sim.request_lease(kestrel, offering(), starts_at=sim.now + HOUR, end_date=sim.now + HOUR / 2)
