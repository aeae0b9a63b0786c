"""What a budget stops, when, and what calls it off; and that a soft one stops nothing."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest
from django.db import DatabaseError

from billing.domain.watching import Terms
from billing.models import Budget, BudgetStop
from billing.services.funds import budgets, holds, stopping
from billing.services.funds.holds import BudgetExceeded, BudgetStopped
from broker.domain.states import EndReason, LeaseState
from broker.models import Lease
from tenants.domain.roles import Role
from tenants.services.walls import as_tenant
from tests.billing.budgets.purses import budget, post, stands, stop_of, watched
from tests.world import Home, Life, alive, fresh, held, offering

pytestmark = pytest.mark.django_db
HOUR = 3600
ALL_AT_80 = Terms(thresholds=(), forecast_thresholds=(), stop_all_at=80, grace_minutes=30)
IDLE_AT_5 = Terms(thresholds=(), forecast_thresholds=(), stop_idle_at=5, grace_minutes=10)
SOFT = Terms(stop_new_at=None)


@pytest.fixture
def life() -> Iterator[Life]:
    with alive() as life:
        yield life


def ends(lease: Lease) -> tuple[str, str]:
    row = fresh(lease)
    return row.state, row.end_reason


def test_the_letter_tells_the_moment(kestrel: Home, life: Life) -> None:
    kestrel.member(Role.OWNER)
    purse = budget(kestrel, 500, life, terms=ALL_AT_80)
    life.lease(kestrel, offering(), quantity=4)
    life.run(3590)
    watched(life)
    assert not post(life), "less than 80 % are spent"
    life.run(20)
    watched(life)
    due = stop_of(purse)
    assert due.due_at == due.told_at + timedelta(minutes=30)
    ((_, subject, text),) = post(life)
    assert subject == f"Everything in Kestrel is stopped at 21 November 2026, {due.due_at:%H:%M} (UTC)"
    assert "80 % of its budget, at which\nall that runs or waits there is ended." in text
    assert f"That happens at 21 November 2026, {due.due_at:%H:%M} (UTC), unless its budget is raised" in text


def test_the_moment_comes_and_everything_below_ends_but_what_rests(kestrel: Home, life: Life) -> None:
    kestrel.member(Role.OWNER)
    child = kestrel.child("docking")
    purse = budget(kestrel, 1000, life, terms=Terms(forecast_thresholds=(), thresholds=(), stop_all_at=10))
    rests = life.lease(kestrel, offering(), volume=life.volume(kestrel).pk, max_duration_s=2 * HOUR)
    life.stop(rests, kestrel)
    life.run(30)
    runs = life.lease(kestrel, offering(), project=child, max_duration_s=3 * HOUR)
    other = life.lease(kestrel, offering(), max_duration_s=3 * HOUR)
    life.run(2000)
    watched(life)
    post(life)
    with pytest.raises(BudgetStopped) as refusal:
        life.ask(kestrel, offering(), project=child)
    assert "ends all that runs here at 2026-11-21" in refusal.value.detail
    life.run(HOUR - 10)
    assert watched(life) == 0
    life.run(10)
    assert watched(life) == 2
    assert watched(life) == 0
    life.run(30)
    assert ends(runs) == ends(other) == ("released", "budget")
    assert held(runs) == []
    assert ends(rests)[0] == LeaseState.STOPPED
    assert (stop_of(purse).ended, stop_of(purse).done_at) == (2, life.now - timedelta(seconds=30))
    ((_, subject, text),) = post(life)
    assert subject == "2 leases were ended: the budget of Kestrel is used up"
    assert "nothing new begins there until the budget is raised" in text
    with pytest.raises(BudgetStopped) as refusal:
        life.start(rests, kestrel)
    assert "has ended all that ran here" in refusal.value.detail
    with as_tenant(kestrel.tenant.pk):
        assert isinstance(holds.refusal(fresh(rests), now=life.now), BudgetStopped)
    budget(kestrel, 100_000, life)
    life.start(rests, kestrel)
    assert post(life) == [], "what was made is not called off"


def test_raising_the_budget_within_the_grace_calls_it_off(kestrel: Home, life: Life) -> None:
    kestrel.member(Role.OWNER)
    purse = budget(kestrel, 500, life, terms=Terms(thresholds=(), forecast_thresholds=(), stop_all_at=10))
    runs = life.lease(kestrel, offering(), max_duration_s=4 * HOUR)
    life.run(2000)
    watched(life)
    post(life)
    budget(kestrel, 501, life)
    assert stop_of(purse).lifted_at is None, "10 % of it are spent all the same"
    budget(kestrel, 5000, life)
    assert stop_of(purse).lifted_at == life.now
    ((_, subject, text),) = post(life)
    assert subject == "Nothing more is stopped in Kestrel"
    assert "of €50.00 is less" in text
    life.run(HOUR)
    assert watched(life) == 0
    assert ends(runs)[0] == LeaseState.ACTIVE
    life.ask(kestrel, offering())


def test_taking_the_stop_out_of_the_terms_calls_it_off_before_its_letter_is_sent(
    kestrel: Home, life: Life
) -> None:
    kestrel.member(Role.OWNER)
    budget(kestrel, 500, life, terms=Terms(thresholds=(), forecast_thresholds=(), stop_all_at=10))
    life.lease(kestrel, offering(), max_duration_s=4 * HOUR)
    life.run(2000)
    watched(life)
    purse = budget(kestrel, 500, life, terms=Terms(thresholds=(), forecast_thresholds=()))
    assert stop_of(purse).lifted_at is not None
    assert [subject for _, subject, _ in post(life)] == ["Nothing more is stopped in Kestrel"]


def test_a_stop_that_was_told_of_last_month_is_not_made_in_this(kestrel: Home, life: Life) -> None:
    life.clock.at += timedelta(days=9, hours=14)
    budget(kestrel, 500, life, terms=Terms(thresholds=(), stop_all_at=10, grace_minutes=120))
    runs = life.lease(kestrel, offering(), max_duration_s=4 * HOUR)
    life.clock.at += timedelta(minutes=50)
    assert watched(life) == 0
    life.clock.at += timedelta(minutes=125)
    assert stopping.stop_due(now=life.now) == 0
    assert fresh(runs).state == LeaseState.ACTIVE
    life.ask(kestrel, offering())
    with as_tenant(kestrel.tenant.pk):
        assert BudgetStop.objects.filter(done_at=None).count() == 1


def test_a_crash_in_the_middle_has_ended_nothing_and_is_made_good(kestrel: Home, life: Life) -> None:
    purse = budget(kestrel, 500, life, terms=Terms(thresholds=(), stop_all_at=10, grace_minutes=0))
    leases = [life.lease(kestrel, offering(), max_duration_s=2 * HOUR) for _ in range(2)]
    life.run(1500)
    real, calls = stopping.ending.release, []

    def breaks(lease: Lease, **told: Any) -> None:
        calls.append(lease)
        if len(calls) == 2:
            raise DatabaseError("gone")
        real(lease, **told)

    with mock.patch.object(stopping.ending, "release", breaks):
        assert watched(life) == 0
    assert [ends(lease)[0] for lease in leases] == ["active", "active"]
    assert watched(life) == 2
    life.run(30)
    assert [ends(lease)[1] for lease in leases] == ["budget", "budget"]
    assert stop_of(purse).ended == 2


def test_who_is_second_finds_it_done(kestrel: Home, life: Life) -> None:
    purse = budget(kestrel, 500, life, terms=Terms(thresholds=(), stop_all_at=10, grace_minutes=0))
    life.lease(kestrel, offering(), max_duration_s=2 * HOUR)
    life.run(2000)
    assert watched(life) == 1
    with as_tenant(kestrel.tenant.pk):
        assert stopping._stop(stop_of(purse).pk, kestrel.tenant.pk, life.now) == 0


def test_what_idles_ends_and_what_works_goes_on(kestrel: Home, life: Life) -> None:
    kestrel.member(Role.OWNER)
    purse = budget(kestrel, 2000, life, terms=IDLE_AT_5)
    idle, works, new = (life.lease(kestrel, offering(), max_duration_s=4 * HOUR) for _ in range(3))
    life.run(1200)
    ill(idle, life, minutes=20)
    ill(new, life, minutes=3)
    watched(life)
    ((_, subject, text),) = post(life)
    assert subject.startswith("What is idle in Kestrel is stopped at")
    assert "leases are ended of which nothing has run for a quarter of an hour" in text
    life.ask(kestrel, offering(), max_duration_s=600)
    life.clock.at += timedelta(minutes=10)
    assert watched(life) == 0, "nobody has seen it lately"
    seen(life, kestrel)
    assert watched(life) == 1
    assert ends(idle) == ("releasing", EndReason.BUDGET)
    assert ends(works)[0] == ends(new)[0] == "active"
    life.clock.at += timedelta(minutes=5)
    seen(life, kestrel)
    assert watched(life) == 1, "it is looked at each minute"
    assert (stop_of(purse, "idle").ended, stop_of(purse, "idle").done_at) == (2, None)
    budget(kestrel, 100_000, life)
    assert stop_of(purse, "idle").lifted_at == life.now
    assert [subject for _, subject, _ in post(life)] == ["Nothing more is stopped in Kestrel"]


def seen(life: Life, owner: Home) -> None:
    """Let clusters have told of every lease a moment ago."""
    with as_tenant(owner.tenant.pk):
        Lease.objects.filter(state=LeaseState.ACTIVE).update(seen_at=life.now)


def ill(lease: Lease, life: Life, *, minutes: int) -> None:
    """Let a lease have been degraded for so long."""
    with as_tenant(lease.tenant_id):
        since = life.now - timedelta(minutes=minutes)
        Lease.objects.filter(pk=lease.pk).update(conditions={"degraded": "it loads"}, ill_since=since)


def test_a_soft_budget_lets_leases_begin_beyond_it_and_still_counts_them(kestrel: Home, life: Life) -> None:
    purse = budget(kestrel, 100, life, terms=SOFT)
    for _ in range(3):
        life.ask(kestrel, offering())
    assert stands(purse, life) == (0, 300, 0)
    budget(kestrel, 100, life, terms=Terms())
    with pytest.raises(BudgetExceeded):
        life.ask(kestrel, offering())


def test_below_a_soft_budget_a_hard_one_holds_and_above_it_too(kestrel: Home, life: Life) -> None:
    child = kestrel.child("docking")
    budget(kestrel, 100, life, terms=SOFT)
    budget(kestrel, 200, life, project=child)
    life.ask(kestrel, offering(), quantity=2, project=child)
    with pytest.raises(BudgetExceeded):
        life.ask(kestrel, offering(), project=child)
    life.ask(kestrel, offering(), quantity=3)


def test_new_leases_may_stop_at_another_share(kestrel: Home, life: Life) -> None:
    purse = budget(kestrel, 1000, life, terms=Terms(stop_new_at=30))
    for _ in range(3):
        life.ask(kestrel, offering())
    with pytest.raises(BudgetExceeded) as refusal:
        life.ask(kestrel, offering())
    assert "is €10.00, of which leases may take €3.00; €0.00 of it is left" in refusal.value.detail
    assert stands(purse, life)[2] == 0


def test_letters_of_stops_whose_budget_is_gone_are_not_sent(kestrel: Home, life: Life) -> None:
    kestrel.member(Role.OWNER)
    purse = budget(
        kestrel,
        500,
        life,
        terms=Terms(thresholds=(), forecast_thresholds=(), stop_all_at=10, grace_minutes=0),
    )
    life.lease(kestrel, offering(), max_duration_s=2 * HOUR)
    life.run(2000)
    assert watched(life) == 1
    with as_tenant(kestrel.tenant.pk):
        budgets.remove(
            Budget.objects.select_related("project").get(pk=purse.pk), actor=kestrel.actor, now=life.now
        )
    assert post(life) == []


def test_a_stop_that_stands_is_announced_once_though_other_shares_follow(kestrel: Home, life: Life) -> None:
    kestrel.member(Role.OWNER)
    budget(kestrel, 500, life, terms=Terms(thresholds=(20,), forecast_thresholds=(), stop_all_at=10))
    life.lease(kestrel, offering(), max_duration_s=2 * HOUR)
    life.run(2000)
    watched(life)
    assert len(post(life)) == 1
    life.run(1700)
    watched(life)
    assert [subject for _, subject, _ in post(life)] == ["The budget of Kestrel has come to 20 %"]
