"""Extension of leases."""

from datetime import UTC, datetime, timedelta

import pytest

from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease
from broker.services.leases.lease_requests import MAX_END_DATE_AHEAD
from broker.services.leases.lifecycle.extension import extend_lease
from broker.services.leases.lifecycle.termination import LeaseAlreadyOver
from tenants.models import AuditEvent, QuotaKind
from tenants.services.errors import InvalidValue, QuotaExceeded
from tenants.services.rls import tenant_scope
from tests.simulation import NOW, Simulation, TenantContext, create_gpus, create_tenant, offering, reload_lease


@pytest.fixture
def kestrel(sim: Simulation) -> TenantContext:
    create_gpus(1)
    return create_tenant("Kestrel")


def extend(sim: Simulation, owner: TenantContext, lease: object, more_s: int) -> None:
    with tenant_scope(owner.tenant.pk):
        extend_lease(lease, more_s=more_s, actor=owner.actor, now=sim.now)  # type: ignore[arg-type]


def test_extending_an_active_lease_moves_its_end(sim: Simulation, kestrel: TenantContext) -> None:
    lease = reload_lease(sim.create_lease(kestrel, offering(), max_duration_s=120))
    assert lease.ends_at
    extend(sim, kestrel, lease, 300)
    assert reload_lease(lease).ends_at == lease.ends_at + timedelta(seconds=300)
    assert reload_lease(lease).version == lease.version + 1
    sim.run(130)
    assert reload_lease(lease).state == LeaseState.ACTIVE
    sim.run(300)
    assert reload_lease(lease).end_reason == "expired"


def test_extending_a_lease_moves_its_fixed_end(sim: Simulation, kestrel: TenantContext) -> None:
    end = sim.now + timedelta(seconds=600)
    lease = sim.create_lease(kestrel, offering(), end_date=end)
    extend(sim, kestrel, lease, 60)
    assert reload_lease(lease).ends_at == end + timedelta(seconds=60)


def test_extending_a_queued_lease_extends_its_waiting_time(sim: Simulation, kestrel: TenantContext) -> None:
    sim.create_lease(kestrel, offering("whole-gpu"))
    waiting = sim.request_lease(kestrel, offering("whole-gpu"), end_date=sim.now + timedelta(seconds=120))
    extend(sim, kestrel, waiting, 600)
    sim.run_with_sweeps(130)
    assert reload_lease(waiting).state == LeaseState.QUEUED


def test_extending_a_starting_lease_keeps_its_due_time(sim: Simulation, kestrel: TenantContext) -> None:
    lease = reload_lease(sim.create_lease(kestrel, offering(), LeaseState.PROVISIONING))
    extend(sim, kestrel, lease, 60)
    assert reload_lease(lease).due_at == lease.due_at
    assert reload_lease(lease).max_duration_s == lease.max_duration_s + 60


def test_an_extension_beyond_quota_changes_nothing(sim: Simulation, kestrel: TenantContext) -> None:
    kestrel.set_quota(QuotaKind.GPU_SECONDS, 4000 * 1000)
    lease = reload_lease(sim.create_lease(kestrel, offering(), max_duration_s=3600))
    with pytest.raises(QuotaExceeded):
        extend(sim, kestrel, lease, 600)
    after = reload_lease(lease)
    assert (after.ends_at, after.max_duration_s, after.version) == (lease.ends_at, 3600, lease.version)
    assert kestrel.quota_used(QuotaKind.GPU_SECONDS) == 3600 * 1000


@pytest.mark.parametrize("more_s", [0, -60, 59, 10**9])
def test_an_extension_outside_its_limits_is_refused(sim: Simulation, kestrel: TenantContext, more_s: int) -> None:
    lease = sim.create_lease(kestrel, offering())
    with pytest.raises(InvalidValue) as refusal:
        extend(sim, kestrel, lease, more_s)
    assert refusal.value.fix.text == "Extend by at most 719 h."


def test_a_releasing_lease_cannot_be_extended(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, offering())
    sim.release_lease(lease)
    with pytest.raises(LeaseAlreadyOver, match="it cannot be extended"):
        extend(sim, kestrel, lease, 600)


def test_a_lease_whose_end_has_passed_cannot_be_extended(sim: Simulation, kestrel: TenantContext) -> None:
    lease = reload_lease(sim.create_lease(kestrel, offering(), max_duration_s=120))
    sim.messages.clear()  # it has not been ended yet
    sim.clock.at += timedelta(seconds=121)
    with pytest.raises(LeaseAlreadyOver, match="reached its end at 2026-11-21 09:02"):
        extend(sim, kestrel, lease, 600)
    assert reload_lease(lease).max_duration_s == 120


@pytest.mark.parametrize("end", [NOW + MAX_END_DATE_AHEAD, datetime(9999, 12, 31, 23, 59, tzinfo=UTC)])
def test_an_extension_beyond_five_years_is_refused(sim: Simulation, kestrel: TenantContext, end: datetime) -> None:
    lease = sim.request_lease(kestrel, offering("whole-gpu"), end_date=sim.now + MAX_END_DATE_AHEAD)
    with tenant_scope(kestrel.tenant.pk):
        Lease.objects.filter(pk=lease.pk).update(end_date=end)  # requested before there was a limit
    with pytest.raises(InvalidValue, match="five years"):
        extend(sim, kestrel, lease, 3600)
    assert reload_lease(lease).end_date == end


def test_an_extension_is_audited_with_before_and_after(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, offering(), max_duration_s=3600)
    extend(sim, kestrel, lease, 600)
    with tenant_scope(kestrel.tenant.pk):
        detail = AuditEvent.objects.get(action="lease.extend").detail
    assert detail == {"before_s": 3600, "after_s": 4200}
