"""A quota that is set on a project in use begins with what is held there, and ends at nought like any other."""

from datetime import UTC, datetime, timedelta
from threading import Event, Thread

import pytest
from django.db import connection, transaction

from broker.domain.states import LeaseState
from broker.models import Lease
from broker.services import proofs
from broker.services.leases import ending
from broker.services.leases.growing import extend
from tenants.models import Project, Quota, QuotaKind
from tenants.services import quotas
from tenants.services.refusals import QuotaExceeded
from tenants.services.walls import as_staff, as_tenant
from tests.database import OwnDatabase
from tests.locks import wait_until_somebody_waits
from tests.world import NOW, OPERATOR, Home, Life, alive, cards, fresh, home, offering

UNITS, HOURS, BURN = QuotaKind.UNITS, QuotaKind.GPU_SECONDS, QuotaKind.BURN
PLENTY = 10**15


@pytest.fixture
def kestrel(life: Life) -> Home:
    cards(8)
    return home("Kestrel")


def limit(owner: Home, kind: QuotaKind, amount: int, project: Project, now: datetime) -> Quota:
    with as_tenant(owner.tenant.pk):
        return quotas.set_limit(project=project, kind=kind, limit=amount, actor=OPERATOR, now=now)


def test_it_counts_what_runs_below_it_and_nothing_else(life: Life, kestrel: Home) -> None:
    team, other = kestrel.child("team"), kestrel.child("other")
    run = kestrel.child("run", parent=team)
    life.lease(kestrel, offering("card"), project=run)
    life.ask(kestrel, offering("1g.10gb"), project=team)
    life.lease(kestrel, offering("1g.10gb"), project=other)
    life.lease(kestrel, offering("1g.10gb"), LeaseState.RELEASED, project=team)
    made = limit(kestrel, UNITS, 100_000, team, life.now)
    assert (made.used, kestrel.used(project=team)) == (8_000, 8_000)


def test_below_what_runs_it_is_allowed_and_nothing_starts_until_use_has_fallen(
    life: Life, kestrel: Home
) -> None:
    team = kestrel.child("team")
    running = life.lease(kestrel, offering("card"), project=team)
    made = limit(kestrel, UNITS, 1_000, team, life.now)
    assert (made.soft_limit, made.used) == (1_000, 7_000)
    with pytest.raises(QuotaExceeded, match="7 are in use, 0 free"):
        life.ask(kestrel, offering("1g.10gb"), project=team)
    life.release(running)
    life.run(10)
    assert kestrel.used(project=team) == 0
    life.ask(kestrel, offering("1g.10gb"), project=team)


def test_what_runs_gives_its_part_back_when_it_ends(life: Life, kestrel: Home) -> None:
    team = kestrel.child("team")
    leases = [life.lease(kestrel, offering("1g.10gb"), project=team) for _ in range(3)]
    for kind in (UNITS, HOURS):
        limit(kestrel, kind, PLENTY, team, life.now)
    assert kestrel.used(HOURS, team) == 3 * 3600 * 1000
    for lease in leases:
        life.release(lease)
    life.run(10)
    assert kestrel.used(project=team) == 0
    active = sum((lease.ended_at - lease.active_at).total_seconds() for lease in map(fresh, leases))  # type: ignore[operator]
    assert kestrel.used(HOURS, team) == int(active) * 1000 > 0


def test_a_copy_read_before_the_quota_was_set_gives_back_what_stands_on_the_row(
    life: Life, kestrel: Home
) -> None:
    stale = fresh(life.ask(kestrel, offering("card")))
    team = stale.project
    with as_tenant(kestrel.tenant.pk):
        Quota.objects.all().delete()
    limit(kestrel, UNITS, PLENTY, team, life.now)
    with as_tenant(kestrel.tenant.pk):
        ending.release(stale, reason=ending.EndReason.BY_TENANT, now=life.now)
    assert (fresh(stale).state, kestrel.used()) == ("released", 0)


def test_hours_count_what_the_month_has_seen_also_of_leases_that_are_over(life: Life, kestrel: Home) -> None:
    over = life.lease(kestrel, offering("card"))
    life.run(60)
    life.release(over)
    life.run(10)
    over = fresh(over)
    assert over.ended_at
    assert over.active_at
    never_active = life.ask(kestrel, offering("1g.10gb"))
    life.release(never_active)
    made = limit(kestrel, HOURS, 5, kestrel.project, life.now)
    assert made.used == int((over.ended_at - over.active_at).total_seconds()) * 7_000
    assert (made.soft_limit, made.limit) == (5, made.used)


def test_an_extension_counts_in_the_month_it_was_asked_for(life: Life, kestrel: Home) -> None:
    life.clock.at = datetime(2026, 11, 30, 23, 0, tzinfo=UTC)
    lease = life.lease(kestrel, offering("1g.10gb"), max_duration_s=7200)
    life.run(5400)
    with as_tenant(kestrel.tenant.pk):
        extend(lease, more_s=600, actor=kestrel.actor, now=life.now)
    assert limit(kestrel, HOURS, PLENTY, kestrel.project, life.now).used == 600 * 1000
    life.release(lease)
    life.run(10)
    assert kestrel.used(HOURS) == 0  # its 90 minutes were asked for in November


def test_a_lease_that_is_over_counts_only_what_it_used_beyond_the_months_before(
    life: Life, kestrel: Home
) -> None:
    life.clock.at = datetime(2026, 11, 30, 23, 0, tzinfo=UTC)
    lease = life.lease(kestrel, offering("1g.10gb"), max_duration_s=3900)
    life.run(3600)
    with as_tenant(kestrel.tenant.pk):
        extend(lease, more_s=600, actor=kestrel.actor, now=life.now)
    life.run(600)
    life.release(lease)
    life.run(10)
    ended = fresh(lease)
    assert ended.ended_at
    assert ended.active_at
    used = int((ended.ended_at - ended.active_at).total_seconds())
    assert 3900 < used < 4500
    assert limit(kestrel, HOURS, PLENTY, kestrel.project, life.now).used == (used - 3900) * 1000


def test_changing_a_limit_counts_nothing_twice(life: Life, kestrel: Home) -> None:
    life.ask(kestrel, offering("card"))
    for amount in (PLENTY, 5, PLENTY):
        assert limit(kestrel, UNITS, amount, kestrel.project, life.now).used == 7_000


def test_a_quota_made_again_counts_again(life: Life, kestrel: Home) -> None:
    lease = life.ask(kestrel, offering("card"))
    first = limit(kestrel, UNITS, PLENTY, kestrel.project, life.now)
    with as_tenant(kestrel.tenant.pk):
        quotas.remove(first, actor=OPERATOR, now=life.now)
    assert limit(kestrel, UNITS, PLENTY, kestrel.project, life.now).used == 7_000
    life.release(lease)
    assert kestrel.used() == 0


def test_the_proof_on_the_operators_page_sees_a_quota_that_forgot_what_runs(
    life: Life, kestrel: Home
) -> None:
    team = kestrel.child("team")
    life.ask(kestrel, offering("card"), project=team)
    made = limit(kestrel, UNITS, PLENTY, team, life.now)
    with as_staff():
        assert [proof.name for proof in proofs.check(now=life.now) if not proof.holds] == []
    with as_tenant(kestrel.tenant.pk):
        Quota.objects.filter(pk=made.pk).update(used=0)
        lease = Lease.objects.get()
        uses = lease.quota_uses
        uses["units"]["parts"] = [part for part in uses["units"]["parts"] if part[0] != made.pk]
        Lease.objects.update(quota_uses=uses)
    with as_staff():
        found = {proof.name: proof.examples for proof in proofs.check(now=life.now) if not proof.holds}
    assert found == {"quotas match holdings": (made.pk,)}


@pytest.mark.parametrize("who_comes_first", ["the request", "the quota"])
def test_a_request_at_the_same_moment_is_counted(own_database: OwnDatabase, who_comes_first: str) -> None:
    with alive() as life:
        cards(8)
        kestrel = home("Kestrel")
        team = kestrel.child("team")
        life.ask(kestrel, offering("1g.10gb"), project=team)
        what = offering("card")
        begun, go_on = Event(), Event()

        def ask() -> None:
            life.ask(kestrel, what, project=team)

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
            wait_until_somebody_waits()
        finally:
            go_on.set()
            for thread in threads:
                thread.join(60)
        assert kestrel.used(project=team) == 8_000 == kestrel.used()


def test_a_lease_that_ends_at_the_same_moment_is_counted_or_not_but_never_left(
    own_database: OwnDatabase,
) -> None:
    with alive() as life:
        cards(8)
        kestrel = home("Kestrel")
        team = kestrel.child("team")
        for _ in range(10):
            lease = life.ask(kestrel, offering("1g.10gb"), project=team)
            with as_tenant(kestrel.tenant.pk):
                Quota.objects.filter(project=team).delete()

            def end(lease: Lease = lease) -> None:
                try:
                    life.release(lease)
                finally:
                    connection.close()

            thread = Thread(target=end)
            thread.start()
            limit(kestrel, UNITS, PLENTY, team, NOW + timedelta(seconds=1))
            thread.join(60)
            assert kestrel.used(project=team) == 0 == kestrel.used()
