"""Ceilings: taken on the whole path at once, given back to the unit."""

from datetime import UTC, datetime

import pytest

from broker.domain.states import LeaseState
from broker.models import Lease
from broker.services import quotas
from broker.services.leases.growing import extend
from tenants.models import Quota, QuotaKind
from tenants.services.refusals import QuotaExceeded
from tenants.services.walls import as_tenant
from tests.world import Home, Life, cards, fresh, home, offering

UNITS, HOURS = QuotaKind.UNITS, QuotaKind.GPU_SECONDS
PLENTY = 10**15


@pytest.fixture
def kestrel(life: Life) -> Home:
    cards(8)
    return home("Kestrel")


def test_a_gang_weighs_as_much_as_its_members(life: Life, kestrel: Home) -> None:
    life.ask(kestrel, offering("3g.40gb"), quantity=4)
    assert kestrel.used() == 12_000


def test_every_node_above_is_charged_and_given_back(life: Life, kestrel: Home) -> None:
    team = kestrel.child("team")
    run = kestrel.child("run", parent=team)
    for project in (team, run):
        kestrel.quota(UNITS, 7_000, project)
    lease = life.lease(kestrel, offering("card"), project=run)
    assert [kestrel.used(project=p) for p in (kestrel.project, team, run)] == [7_000] * 3
    life.release(lease)
    life.run(10)
    assert [kestrel.used(project=p) for p in (kestrel.project, team, run)] == [0] * 3


def test_a_ceiling_far_above_refuses_and_nothing_below_keeps_anything(life: Life, kestrel: Home) -> None:
    team = kestrel.child("team")
    kestrel.quota(UNITS, 100_000, team)
    kestrel.quota(UNITS, 6_000)
    with pytest.raises(QuotaExceeded, match="a project above this one"):
        life.ask(kestrel, offering("card"), project=team)
    assert kestrel.used(project=team) == 0


def test_a_sibling_does_not_count(life: Life, kestrel: Home) -> None:
    one, other = kestrel.child("one"), kestrel.child("other")
    kestrel.quota(UNITS, 7_000, one)
    kestrel.quota(UNITS, 7_000, other)
    life.ask(kestrel, offering("card"), project=one)
    life.ask(kestrel, offering("card"), project=other)
    assert (kestrel.used(project=one), kestrel.used(project=other)) == (7_000, 7_000)


def test_the_soft_limit_is_what_a_grant_is_tested_against(life: Life, kestrel: Home) -> None:
    quota = kestrel.quota(UNITS, 100_000)
    life.ask(kestrel, offering("card"))
    with as_tenant(kestrel.tenant.pk):
        Quota.objects.filter(pk=quota.pk).update(soft_limit=5_000)  # below use: nothing is taken away
    with pytest.raises(QuotaExceeded):
        life.ask(kestrel, offering("1g.10gb"))
    assert kestrel.used() == 7_000


def test_gpu_hours_are_taken_whole_and_what_was_not_used_comes_back(life: Life, kestrel: Home) -> None:
    kestrel.quota(HOURS, PLENTY)
    lease = fresh(life.lease(kestrel, offering("1g.10gb"), max_duration_s=3600))
    assert kestrel.used(HOURS) == 3600 * 1000
    life.run(100)
    life.release(lease)
    life.run(10)
    ended = fresh(lease)
    assert ended.active_at
    assert ended.ended_at
    seconds = int((ended.ended_at - ended.active_at).total_seconds())
    assert seconds >= 100
    assert kestrel.used(HOURS) == seconds * 1000


def test_gpu_hours_beyond_the_window_are_refused_in_hours(life: Life, kestrel: Home) -> None:
    kestrel.quota(HOURS, 10 * 3600 * 1000)
    life.ask(kestrel, offering("1g.10gb"), max_duration_s=8 * 3600)
    with pytest.raises(QuotaExceeded) as refusal:
        life.ask(kestrel, offering("1g.10gb"), max_duration_s=2 * 3600 + 36)
    assert "GPU-hours this month is 10 unit hours; 8 are in use, 2 free, and this asks for 2.01" in (
        refusal.value.detail
    )


def test_a_new_month_counts_from_nought(life: Life, kestrel: Home) -> None:
    kestrel.quota(HOURS, 10 * 3600 * 1000)
    old = life.lease(kestrel, offering("1g.10gb"), max_duration_s=10 * 3600)
    life.clock.at = datetime(2026, 12, 1, tzinfo=UTC)
    life.ask(kestrel, offering("1g.10gb"), max_duration_s=9 * 3600)
    assert kestrel.used(HOURS) == 9 * 3600 * 1000
    life.release(old)
    life.go(10)
    assert kestrel.used(HOURS) == 9 * 3600 * 1000  # November's hours are November's


def test_an_extension_takes_only_the_difference(life: Life, kestrel: Home) -> None:
    kestrel.quota(HOURS, PLENTY)
    lease = life.lease(kestrel, offering("1g.10gb"), max_duration_s=3600)
    with as_tenant(kestrel.tenant.pk):
        extend(lease, more_s=1800, actor=kestrel.actor, now=life.now)
    assert kestrel.used(HOURS) == 5400 * 1000
    assert kestrel.used(UNITS) == 1000
    life.release(lease)
    life.run(10)
    assert kestrel.used(UNITS) == 0
    assert kestrel.used(HOURS) < 60 * 1000


def test_an_extension_into_a_new_month_gives_each_month_its_own_back(life: Life, kestrel: Home) -> None:
    kestrel.quota(HOURS, PLENTY)
    life.clock.at = datetime(2026, 11, 30, 23, 0, tzinfo=UTC)
    lease = life.lease(kestrel, offering("1g.10gb"), max_duration_s=7200)
    life.clock.at = datetime(2026, 12, 1, 0, 30, tzinfo=UTC)
    with as_tenant(kestrel.tenant.pk):
        extend(lease, more_s=600, actor=kestrel.actor, now=life.now)
    assert kestrel.used(HOURS) == 600 * 1000
    life.release(lease)
    life.go(10)
    assert fresh(lease).state == LeaseState.RELEASED
    assert kestrel.used(HOURS) == 0  # the 90 minutes used were taken, and stay, in November


def test_a_gate_called_again_takes_nothing_more(life: Life, kestrel: Home) -> None:
    lease = life.ask(kestrel, offering("card"))
    with as_tenant(kestrel.tenant.pk):
        quotas.gate(lease, now=life.now)
    assert kestrel.used() == 7_000


def test_where_no_quota_stands_nothing_is_taken_or_given_back(life: Life, kestrel: Home) -> None:
    with as_tenant(kestrel.tenant.pk):
        Quota.objects.all().delete()
    lease = life.lease(kestrel, offering("1g.10gb"), LeaseState.RELEASED)
    assert fresh(lease).state == LeaseState.RELEASED


def test_a_quota_taken_away_meanwhile_is_not_missed(life: Life, kestrel: Home) -> None:
    lease = life.lease(kestrel, offering("1g.10gb"))
    with as_tenant(kestrel.tenant.pk):
        Quota.objects.all().delete()
    life.release(lease)
    life.run(10)
    assert fresh(lease).state == LeaseState.RELEASED


@pytest.mark.parametrize(("used", "left"), [(20, 100), (130, 130), (150, 150)])
def test_what_was_used_counts_against_what_was_taken_first(
    life: Life, kestrel: Home, used: int, left: int
) -> None:
    quota = kestrel.quota(HOURS, PLENTY)
    december = datetime(2026, 12, 1, tzinfo=UTC)
    lease = life.ask(kestrel, offering("1g.10gb"))
    parts = [[quota.pk, 100, "2026-11-01T00:00:00+00:00"], [quota.pk, 50, december.isoformat()]]
    with as_tenant(kestrel.tenant.pk):
        Lease.objects.filter(pk=lease.pk).update(quota_uses={"gpu_seconds": {"amount": 150, "parts": parts}})
        Quota.objects.filter(pk=quota.pk).update(used=150, window_start=december)
        quotas.give_back(lease, used_unit_seconds=used)
    assert kestrel.used(HOURS) == left


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
def test_amounts_are_written_without_floats(kind: str, amount: int, text: str) -> None:
    assert quotas.shown(kind, amount) == text


def test_who_read_the_clock_before_the_new_month_counts_in_it_if_it_came_first(
    life: Life, kestrel: Home
) -> None:
    hour = 3600 * 1000
    kestrel.quota(HOURS, 100 * hour)
    before, after = datetime(2026, 11, 30, 23, 59, 59, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)
    life.clock.at = after
    first = life.ask(kestrel, offering("1g.10gb"), max_duration_s=80 * 3600)
    life.clock.at = before
    late = life.ask(kestrel, offering("1g.10gb"), max_duration_s=3600)
    life.clock.at = after
    assert kestrel.used(HOURS) == 81 * hour
    with pytest.raises(QuotaExceeded, match="81 are in use, 19 free"):
        life.ask(kestrel, offering("1g.10gb"), max_duration_s=80 * 3600)
    for lease in (late, first):
        life.release(lease)
    life.go(10)
    assert {fresh(lease).state for lease in (late, first)} == {LeaseState.RELEASED}
    assert kestrel.used(HOURS) == 0


def test_giving_back_more_than_is_counted_leaves_nought_and_no_lease_behind(
    life: Life, kestrel: Home
) -> None:
    quota = kestrel.quota(UNITS, 100_000)
    lease = life.lease(kestrel, offering("card"))
    with as_tenant(kestrel.tenant.pk):
        Quota.objects.filter(pk=quota.pk).update(
            used=1_000
        )  # whatever went wrong, a card must not stay taken
    life.release(lease)
    life.go(10)
    assert (fresh(lease).state, kestrel.used()) == (LeaseState.RELEASED, 0)
