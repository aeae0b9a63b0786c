"""Quotas: reservation on the whole project path, and return."""

from datetime import UTC, datetime

import pytest

from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease
from broker.services import quotas
from broker.services.leases.lifecycle.extension import extend_lease
from tenants.models import Quota, QuotaKind
from tenants.services.errors import QuotaExceeded
from tenants.services.rls import tenant_scope
from tests.simulation import Simulation, TenantContext, create_gpus, create_tenant, offering, reload_lease

UNITS, HOURS = QuotaKind.UNITS, QuotaKind.GPU_SECONDS
PLENTY = 10**15


@pytest.fixture
def kestrel(sim: Simulation) -> TenantContext:
    create_gpus(8)
    return create_tenant("Kestrel")


def test_a_gang_uses_the_quota_of_all_its_slices(sim: Simulation, kestrel: TenantContext) -> None:
    sim.request_lease(kestrel, offering("3g.40gb"), quantity=4)
    assert kestrel.quota_used() == 12_000


def test_a_lease_uses_and_returns_the_quota_of_every_parent_project(sim: Simulation, kestrel: TenantContext) -> None:
    team = kestrel.create_project("team")
    run = kestrel.create_project("run", parent=team)
    for project in (team, run):
        kestrel.set_quota(UNITS, 7_000, project)
    lease = sim.create_lease(kestrel, offering("whole-gpu"), project=run)
    assert [kestrel.quota_used(project=p) for p in (kestrel.project, team, run)] == [7_000] * 3
    sim.release_lease(lease)
    sim.run(10)
    assert [kestrel.quota_used(project=p) for p in (kestrel.project, team, run)] == [0] * 3


def test_a_refusal_by_a_parent_quota_charges_no_project_below(sim: Simulation, kestrel: TenantContext) -> None:
    team = kestrel.create_project("team")
    kestrel.set_quota(UNITS, 100_000, team)
    kestrel.set_quota(UNITS, 6_000)
    with pytest.raises(QuotaExceeded, match="a parent project"):
        sim.request_lease(kestrel, offering("whole-gpu"), project=team)
    assert kestrel.quota_used(project=team) == 0


def test_a_lease_does_not_use_the_quota_of_sibling_projects(sim: Simulation, kestrel: TenantContext) -> None:
    one, other = kestrel.create_project("one"), kestrel.create_project("other")
    kestrel.set_quota(UNITS, 7_000, one)
    kestrel.set_quota(UNITS, 7_000, other)
    sim.request_lease(kestrel, offering("whole-gpu"), project=one)
    sim.request_lease(kestrel, offering("whole-gpu"), project=other)
    assert (kestrel.quota_used(project=one), kestrel.quota_used(project=other)) == (7_000, 7_000)


def test_a_request_is_checked_against_the_soft_limit(sim: Simulation, kestrel: TenantContext) -> None:
    quota = kestrel.set_quota(UNITS, 100_000)
    sim.request_lease(kestrel, offering("whole-gpu"))
    with tenant_scope(kestrel.tenant.pk):
        Quota.objects.filter(pk=quota.pk).update(soft_limit=5_000)  # below use: nothing is taken away
    with pytest.raises(QuotaExceeded):
        sim.request_lease(kestrel, offering("1g.10gb"))
    assert kestrel.quota_used() == 7_000


def test_unused_gpu_hours_are_returned_at_the_end(sim: Simulation, kestrel: TenantContext) -> None:
    kestrel.set_quota(HOURS, PLENTY)
    lease = reload_lease(sim.create_lease(kestrel, offering("1g.10gb"), max_duration_s=3600))
    assert kestrel.quota_used(HOURS) == 3600 * 1000
    sim.run(100)
    sim.release_lease(lease)
    sim.run(10)
    ended = reload_lease(lease)
    assert ended.active_at
    assert ended.ended_at
    seconds = int((ended.ended_at - ended.active_at).total_seconds())
    assert seconds >= 100
    assert kestrel.quota_used(HOURS) == seconds * 1000


def test_gpu_hours_beyond_the_window_are_refused_in_hours(sim: Simulation, kestrel: TenantContext) -> None:
    kestrel.set_quota(HOURS, 10 * 3600 * 1000)
    sim.request_lease(kestrel, offering("1g.10gb"), max_duration_s=8 * 3600)
    with pytest.raises(QuotaExceeded) as refusal:
        sim.request_lease(kestrel, offering("1g.10gb"), max_duration_s=2 * 3600 + 36)
    assert "GPU-hours this month is 10 unit hours; 8 are in use, 2 free, and this needs 2.01" in (refusal.value.detail)


def test_gpu_hours_of_a_new_month_count_from_zero(sim: Simulation, kestrel: TenantContext) -> None:
    kestrel.set_quota(HOURS, 10 * 3600 * 1000)
    old = sim.create_lease(kestrel, offering("1g.10gb"), max_duration_s=10 * 3600)
    sim.clock.at = datetime(2026, 12, 1, tzinfo=UTC)
    sim.request_lease(kestrel, offering("1g.10gb"), max_duration_s=9 * 3600)
    assert kestrel.quota_used(HOURS) == 9 * 3600 * 1000
    sim.release_lease(old)
    sim.run_with_sweeps(10)
    assert kestrel.quota_used(HOURS) == 9 * 3600 * 1000  # November's hours are November's


def test_an_extension_takes_only_the_difference(sim: Simulation, kestrel: TenantContext) -> None:
    kestrel.set_quota(HOURS, PLENTY)
    lease = sim.create_lease(kestrel, offering("1g.10gb"), max_duration_s=3600)
    with tenant_scope(kestrel.tenant.pk):
        extend_lease(lease, more_s=1800, actor=kestrel.actor, now=sim.now)
    assert kestrel.quota_used(HOURS) == 5400 * 1000
    assert kestrel.quota_used(UNITS) == 1000
    sim.release_lease(lease)
    sim.run(10)
    assert kestrel.quota_used(UNITS) == 0
    assert kestrel.quota_used(HOURS) < 60 * 1000


def test_an_extension_into_a_new_month_returns_quota_to_its_own_month(sim: Simulation, kestrel: TenantContext) -> None:
    kestrel.set_quota(HOURS, PLENTY)
    sim.clock.at = datetime(2026, 11, 30, 23, 0, tzinfo=UTC)
    lease = sim.create_lease(kestrel, offering("1g.10gb"), max_duration_s=7200)
    sim.clock.at = datetime(2026, 12, 1, 0, 30, tzinfo=UTC)
    with tenant_scope(kestrel.tenant.pk):
        extend_lease(lease, more_s=600, actor=kestrel.actor, now=sim.now)
    assert kestrel.quota_used(HOURS) == 600 * 1000
    sim.release_lease(lease)
    sim.run_with_sweeps(10)
    assert reload_lease(lease).state == LeaseState.RELEASED
    assert kestrel.quota_used(HOURS) == 0  # the 90 minutes used were taken, and stay, in November


def test_a_repeated_quota_gate_uses_no_more_quota(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.request_lease(kestrel, offering("whole-gpu"))
    with tenant_scope(kestrel.tenant.pk):
        quotas.gate(lease, now=sim.now)
    assert kestrel.quota_used() == 7_000


def test_a_lease_without_any_quota_is_leased_and_released(sim: Simulation, kestrel: TenantContext) -> None:
    with tenant_scope(kestrel.tenant.pk):
        Quota.objects.all().delete()
    lease = sim.create_lease(kestrel, offering("1g.10gb"), LeaseState.RELEASED)
    assert reload_lease(lease).state == LeaseState.RELEASED


def test_a_lease_whose_quota_was_deleted_is_released(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, offering("1g.10gb"))
    with tenant_scope(kestrel.tenant.pk):
        Quota.objects.all().delete()
    sim.release_lease(lease)
    sim.run(10)
    assert reload_lease(lease).state == LeaseState.RELEASED


@pytest.mark.parametrize(("used", "left"), [(20, 100), (130, 130), (150, 150)])
def test_used_hours_count_against_the_earliest_window(
    sim: Simulation, kestrel: TenantContext, used: int, left: int
) -> None:
    quota = kestrel.set_quota(HOURS, PLENTY)
    december = datetime(2026, 12, 1, tzinfo=UTC)
    lease = sim.request_lease(kestrel, offering("1g.10gb"))
    parts = [[quota.pk, 100, "2026-11-01T00:00:00+00:00"], [quota.pk, 50, december.isoformat()]]
    with tenant_scope(kestrel.tenant.pk):
        Lease.objects.filter(pk=lease.pk).update(quota_uses={"gpu_seconds": {"amount": 150, "parts": parts}})
        Quota.objects.filter(pk=quota.pk).update(used=150, window_start=december)
        quotas.return_quota(lease, used_unit_seconds=used)
    assert kestrel.quota_used(HOURS) == left


@pytest.mark.parametrize(
    ("kind", "amount", "text"),
    [
        ("units", 14_000, "14"),
        ("units", 1_750, "1.75"),
        ("gpu_seconds", 3_600_000 * 1_234, "1,234"),
        ("gpu_seconds", 1, "0.01"),
        ("burn", 3_500_000_000, "3.5"),
    ],
)
def test_quota_amounts_are_formatted_without_floats(kind: str, amount: int, text: str) -> None:
    assert quotas.format_amount(kind, amount) == text


def test_a_request_with_an_older_clock_counts_in_the_current_window(sim: Simulation, kestrel: TenantContext) -> None:
    hour = 3600 * 1000
    kestrel.set_quota(HOURS, 100 * hour)
    before, after = datetime(2026, 11, 30, 23, 59, 59, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)
    sim.clock.at = after
    first = sim.request_lease(kestrel, offering("1g.10gb"), max_duration_s=80 * 3600)
    sim.clock.at = before
    late = sim.request_lease(kestrel, offering("1g.10gb"), max_duration_s=3600)
    sim.clock.at = after
    assert kestrel.quota_used(HOURS) == 81 * hour
    with pytest.raises(QuotaExceeded, match="81 are in use, 19 free"):
        sim.request_lease(kestrel, offering("1g.10gb"), max_duration_s=80 * 3600)
    for lease in (late, first):
        sim.release_lease(lease)
    sim.run_with_sweeps(10)
    assert {reload_lease(lease).state for lease in (late, first)} == {LeaseState.RELEASED}
    assert kestrel.quota_used(HOURS) == 0


def test_returning_more_quota_than_counted_leaves_zero_and_releases_the_lease(
    sim: Simulation, kestrel: TenantContext
) -> None:
    quota = kestrel.set_quota(UNITS, 100_000)
    lease = sim.create_lease(kestrel, offering("whole-gpu"))
    with tenant_scope(kestrel.tenant.pk):
        Quota.objects.filter(pk=quota.pk).update(used=1_000)  # whatever went wrong, a GPU must not stay in use
    sim.release_lease(lease)
    sim.run_with_sweeps(10)
    assert (reload_lease(lease).state, kestrel.quota_used()) == (LeaseState.RELEASED, 0)
