"""New quotas on projects in use."""

from datetime import UTC, datetime, timedelta
from threading import Event, Thread

import pytest
from django.db import connection, transaction

from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease
from broker.services.leases.lifecycle import termination
from broker.services.leases.lifecycle.extension import extend_lease
from broker.services.reports import invariant_checks
from tenants.models import Project, Quota, QuotaKind
from tenants.services import quotas
from tenants.services.errors import QuotaExceeded
from tenants.services.rls import staff_scope, tenant_scope
from tests.database import OwnDatabase
from tests.locks import wait_for_lock_waiter
from tests.simulation import (
    NOW,
    OPERATOR,
    Simulation,
    TenantContext,
    create_gpus,
    create_tenant,
    offering,
    reload_lease,
    simulate,
)

UNITS, HOURS, BURN = QuotaKind.UNITS, QuotaKind.GPU_SECONDS, QuotaKind.BURN
PLENTY = 10**15


@pytest.fixture
def kestrel(sim: Simulation) -> TenantContext:
    create_gpus(8)
    return create_tenant("Kestrel")


def limit(owner: TenantContext, kind: QuotaKind, amount: int, project: Project, now: datetime) -> Quota:
    with tenant_scope(owner.tenant.pk):
        return quotas.set_limit(project=project, kind=kind, limit=amount, actor=OPERATOR, now=now)


def test_a_new_quota_counts_live_leases_of_its_subprojects_only(sim: Simulation, kestrel: TenantContext) -> None:
    team, other = kestrel.create_project("team"), kestrel.create_project("other")
    run = kestrel.create_project("run", parent=team)
    sim.create_lease(kestrel, offering("whole-gpu"), project=run)
    sim.request_lease(kestrel, offering("1g.10gb"), project=team)
    sim.create_lease(kestrel, offering("1g.10gb"), project=other)
    sim.create_lease(kestrel, offering("1g.10gb"), LeaseState.RELEASED, project=team)
    made = limit(kestrel, UNITS, 100_000, team, sim.now)
    assert (made.used, kestrel.quota_used(project=team)) == (8_000, 8_000)


def test_a_quota_below_current_use_is_allowed_and_blocks_new_leases(sim: Simulation, kestrel: TenantContext) -> None:
    team = kestrel.create_project("team")
    running = sim.create_lease(kestrel, offering("whole-gpu"), project=team)
    made = limit(kestrel, UNITS, 1_000, team, sim.now)
    assert (made.soft_limit, made.used) == (1_000, 7_000)
    with pytest.raises(QuotaExceeded, match="7 are in use, 0 free"):
        sim.request_lease(kestrel, offering("1g.10gb"), project=team)
    sim.release_lease(running)
    sim.run(10)
    assert kestrel.quota_used(project=team) == 0
    sim.request_lease(kestrel, offering("1g.10gb"), project=team)


def test_leases_from_before_a_new_quota_return_their_part_when_they_end(
    sim: Simulation, kestrel: TenantContext
) -> None:
    team = kestrel.create_project("team")
    leases = [sim.create_lease(kestrel, offering("1g.10gb"), project=team) for _ in range(3)]
    for kind in (UNITS, HOURS):
        limit(kestrel, kind, PLENTY, team, sim.now)
    assert kestrel.quota_used(HOURS, team) == 3 * 3600 * 1000
    for lease in leases:
        sim.release_lease(lease)
    sim.run(10)
    assert kestrel.quota_used(project=team) == 0
    active = sum((lease.ended_at - lease.active_at).total_seconds() for lease in map(reload_lease, leases))  # type: ignore[operator]
    assert kestrel.quota_used(HOURS, team) == int(active) * 1000 > 0


def test_a_release_of_a_stale_lease_returns_the_stored_quota_use(sim: Simulation, kestrel: TenantContext) -> None:
    stale = reload_lease(sim.request_lease(kestrel, offering("whole-gpu")))
    team = stale.project
    with tenant_scope(kestrel.tenant.pk):
        Quota.objects.all().delete()
    limit(kestrel, UNITS, PLENTY, team, sim.now)
    with tenant_scope(kestrel.tenant.pk):
        termination.release_lease(stale, reason=termination.EndReason.BY_TENANT, now=sim.now)
    assert (reload_lease(stale).state, kestrel.quota_used()) == ("released", 0)


def test_a_new_gpu_hour_quota_counts_ended_leases_of_the_month(sim: Simulation, kestrel: TenantContext) -> None:
    over = sim.create_lease(kestrel, offering("whole-gpu"))
    sim.run(60)
    sim.release_lease(over)
    sim.run(10)
    over = reload_lease(over)
    assert over.ended_at
    assert over.active_at
    never_active = sim.request_lease(kestrel, offering("1g.10gb"))
    sim.release_lease(never_active)
    made = limit(kestrel, HOURS, 5, kestrel.project, sim.now)
    assert made.used == int((over.ended_at - over.active_at).total_seconds()) * 7_000
    assert (made.soft_limit, made.limit) == (5, made.used)


def test_an_extension_counts_in_the_month_of_its_request(sim: Simulation, kestrel: TenantContext) -> None:
    sim.clock.at = datetime(2026, 11, 30, 23, 0, tzinfo=UTC)
    lease = sim.create_lease(kestrel, offering("1g.10gb"), max_duration_s=7200)
    sim.run(5400)
    with tenant_scope(kestrel.tenant.pk):
        extend_lease(lease, more_s=600, actor=kestrel.actor, now=sim.now)
    assert limit(kestrel, HOURS, PLENTY, kestrel.project, sim.now).used == 600 * 1000
    sim.release_lease(lease)
    sim.run(10)
    assert kestrel.quota_used(HOURS) == 0  # its 90 minutes were requested in November


def test_an_ended_lease_counts_only_hours_beyond_earlier_months(sim: Simulation, kestrel: TenantContext) -> None:
    sim.clock.at = datetime(2026, 11, 30, 23, 0, tzinfo=UTC)
    lease = sim.create_lease(kestrel, offering("1g.10gb"), max_duration_s=3900)
    sim.run(3600)
    with tenant_scope(kestrel.tenant.pk):
        extend_lease(lease, more_s=600, actor=kestrel.actor, now=sim.now)
    sim.run(600)
    sim.release_lease(lease)
    sim.run(10)
    ended = reload_lease(lease)
    assert ended.ended_at
    assert ended.active_at
    used = int((ended.ended_at - ended.active_at).total_seconds())
    assert 3900 < used < 4500
    assert limit(kestrel, HOURS, PLENTY, kestrel.project, sim.now).used == (used - 3900) * 1000


def test_changing_a_quota_limit_counts_no_lease_twice(sim: Simulation, kestrel: TenantContext) -> None:
    sim.request_lease(kestrel, offering("whole-gpu"))
    for amount in (PLENTY, 5, PLENTY):
        assert limit(kestrel, UNITS, amount, kestrel.project, sim.now).used == 7_000


def test_a_recreated_quota_counts_current_use(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.request_lease(kestrel, offering("whole-gpu"))
    first = limit(kestrel, UNITS, PLENTY, kestrel.project, sim.now)
    with tenant_scope(kestrel.tenant.pk):
        quotas.remove(first, actor=OPERATOR, now=sim.now)
    assert limit(kestrel, UNITS, PLENTY, kestrel.project, sim.now).used == 7_000
    sim.release_lease(lease)
    assert kestrel.quota_used() == 0


def test_the_invariant_check_finds_a_quota_that_misses_a_live_lease(sim: Simulation, kestrel: TenantContext) -> None:
    team = kestrel.create_project("team")
    sim.request_lease(kestrel, offering("whole-gpu"), project=team)
    made = limit(kestrel, UNITS, PLENTY, team, sim.now)
    with staff_scope():
        assert [proof.name for proof in invariant_checks.check_invariants(now=sim.now) if not proof.holds] == []
    with tenant_scope(kestrel.tenant.pk):
        Quota.objects.filter(pk=made.pk).update(used=0)
        lease = Lease.objects.get()
        uses = lease.quota_uses
        uses["units"]["parts"] = [part for part in uses["units"]["parts"] if part[0] != made.pk]
        Lease.objects.update(quota_uses=uses)
    with staff_scope():
        found = {
            proof.name: proof.examples for proof in invariant_checks.check_invariants(now=sim.now) if not proof.holds
        }
    assert found == {"quotas match holdings": (made.pk,)}


@pytest.mark.parametrize("who_comes_first", ["the request", "the quota"])
def test_a_concurrent_request_is_counted_by_a_new_quota(own_database: OwnDatabase, who_comes_first: str) -> None:
    with simulate() as sim:
        create_gpus(8)
        kestrel = create_tenant("Kestrel")
        team = kestrel.create_project("team")
        sim.request_lease(kestrel, offering("1g.10gb"), project=team)
        what = offering("whole-gpu")
        begun, go_on = Event(), Event()

        def ask() -> None:
            sim.request_lease(kestrel, what, project=team)

        def set_it() -> None:
            limit(kestrel, UNITS, PLENTY, team, NOW)

        def first() -> None:
            try:
                with transaction.atomic():
                    (ask if who_comes_first == "the request" else set_it)()
                    begun.set()
                    assert go_on.wait(60)
            finally:
                connection.close()

        def second() -> None:
            try:
                (set_it if who_comes_first == "the request" else ask)()
            finally:
                connection.close()

        threads = [Thread(target=first), Thread(target=second)]
        threads[0].start()
        assert begun.wait(60)
        threads[1].start()
        try:
            wait_for_lock_waiter()
        finally:
            go_on.set()
            for thread in threads:
                thread.join(60)
        assert kestrel.quota_used(project=team) == 8_000 == kestrel.quota_used()


def test_a_concurrently_ending_lease_leaves_no_quota_use(
    own_database: OwnDatabase,
) -> None:
    with simulate() as sim:
        create_gpus(8)
        kestrel = create_tenant("Kestrel")
        team = kestrel.create_project("team")
        for _ in range(10):
            lease = sim.request_lease(kestrel, offering("1g.10gb"), project=team)
            with tenant_scope(kestrel.tenant.pk):
                Quota.objects.filter(project=team).delete()

            def end(lease: Lease = lease) -> None:
                try:
                    sim.release_lease(lease)
                finally:
                    connection.close()

            thread = Thread(target=end)
            thread.start()
            limit(kestrel, UNITS, PLENTY, team, NOW + timedelta(seconds=1))
            thread.join(60)
            assert kestrel.quota_used(project=team) == 0 == kestrel.quota_used()
