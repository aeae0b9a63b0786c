"""What a budget stops, when, and what calls it off; and that a soft one stops nothing."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest
from django.db import DatabaseError

from billing.domain.watching import Terms
from billing.models import Budget, BudgetStop
from billing.services.funds import budgets, holds, rota, standings, stopping, watching
from billing.services.funds.holds import BudgetExceeded, BudgetStopped
from billing.services.post import queue
from broker.domain.states import EndReason, LeaseState
from broker.models import Lease, StaleLease
from tenants.domain.roles import Role
from tenants.services.walls import as_sweep, as_tenant
from tests.billing.budgets.purses import budget, post, stands, stop_of, watched
from tests.world import Home, Life, alive, fresh, held, home, offering

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


def breaking(at: int, error: BaseException) -> Any:
    """Let the lease of this number not be ended."""
    real, calls = stopping.ending.release, list[Lease]()

    def breaks(lease: Lease, **told: Any) -> None:
        calls.append(lease)
        if len(calls) == at:
            raise error
        real(lease, **told)

    return mock.patch.object(stopping.ending, "release", breaks)


def three(kestrel: Home, life: Life) -> tuple[Budget, list[Lease]]:
    """Return a budget that is to end three leases now."""
    kestrel.member(Role.OWNER)
    terms = Terms(thresholds=(), forecast_thresholds=(), stop_all_at=10, grace_minutes=0)
    purse = budget(kestrel, 600, life, terms=terms)
    leases = [life.lease(kestrel, offering(), max_duration_s=2 * HOUR) for _ in range(3)]
    life.run(1500)
    watching.watch(now=life.now)
    post(life)
    return purse, leases


def test_a_crash_in_the_middle_has_ended_nothing_and_is_made_good(kestrel: Home, life: Life) -> None:
    purse, leases = three(kestrel, life)
    with breaking(2, KeyboardInterrupt()), pytest.raises(KeyboardInterrupt):
        stopping.stop_due(now=life.now)
    assert [ends(lease)[0] for lease in leases] == ["active"] * 3
    assert stopping.stop_due(now=life.now) == 3
    life.run(30)
    assert [ends(lease)[1] for lease in leases] == ["budget"] * 3
    assert stop_of(purse).ended == 3


@pytest.mark.parametrize("error", [DatabaseError("gone"), KeyError("odd"), StaleLease("odd")])
def test_a_lease_that_cannot_be_ended_keeps_no_other_running_and_is_told_of(
    kestrel: Home, life: Life, error: Exception
) -> None:
    purse, leases = three(kestrel, life)
    with breaking(2, error):
        assert stopping.stop_due(now=life.now) == 2
    assert sorted(ends(lease)[0] for lease in leases) == ["active", "releasing", "releasing"]
    stop = stop_of(purse)
    assert (stop.ended, stop.done_at) == (2, None)
    assert "could not be ended yet, and is tried again" in stop.trouble
    with as_sweep():
        assert stopping.late(now=life.now) == 0
        assert stopping.late(now=life.now + timedelta(minutes=11)) == 1
    assert post(life) == [], "not all has ended"
    assert stopping.stop_due(now=life.now) == 1
    stop = stop_of(purse)
    assert (stop.ended, stop.done_at, stop.trouble) == (3, life.now, "")
    assert [subject for _, subject, _ in post(life)] == [
        "3 leases were ended: the budget of Kestrel is used up"
    ]


def test_a_stop_of_more_than_a_round_can_end_goes_on_in_the_next(kestrel: Home, life: Life) -> None:
    purse, _ = three(kestrel, life)
    with mock.patch.object(rota, "LASTS_S", -1.0):
        assert stopping.stop_due(now=life.now) == 1
        assert stop_of(purse).done_at is None
        assert stopping.stop_due(now=life.now) == 1
        assert stopping.stop_due(now=life.now) == 1
    assert (stop_of(purse).ended, stop_of(purse).done_at) == (3, life.now)


def test_stops_of_all_come_before_what_idles_and_then_who_waited_longest(kestrel: Home, life: Life) -> None:
    owners = [kestrel, home("Osprey"), home("Merlin")]
    order = list[str]()
    for owner, terms in zip(owners, (IDLE_AT_5, IDLE_AT_5, ALL_AT_80), strict=True):
        budget(owner, 100, life, terms=terms)
        life.lease(owner, offering())
    life.run(3000)
    watching.watch(now=life.now)
    life.clock.at += HOUR * timedelta(seconds=1)

    def look(stop_id: str, *_: Any, **__: Any) -> int:
        order.append(stop_id)
        return 0

    with mock.patch.object(stopping, "_stop", look), mock.patch.object(rota, "LASTS_S", -1.0):
        stopping.stop_due(now=life.now)
        assert order == [stop_of_tenant(owners[2], "all")]
        with mock.patch.object(stopping, "MOST", 9):
            with as_tenant(owners[2].tenant.pk):
                BudgetStop.objects.filter(pk=order[0]).update(done_at=life.now)
            stopping.stop_due(now=life.now)
            stopping.stop_due(now=life.now + timedelta(minutes=1))
            stopping.stop_due(now=life.now + timedelta(minutes=2))
    assert sorted(order[1:3]) == sorted(stop_of_tenant(owner, "idle") for owner in owners[:2])
    assert order[3] == order[1]


def stop_of_tenant(owner: Home, what: str) -> str:
    with as_tenant(owner.tenant.pk):
        return BudgetStop.objects.get(what=what).pk


def test_what_was_spent_and_is_no_longer_stops_nothing(kestrel: Home, life: Life) -> None:
    purse, leases = three(kestrel, life)
    with as_tenant(kestrel.tenant.pk):
        (stands_,) = standings.standing([purse], tenant=kestrel.tenant, now=life.now)
    corrected = replace(stands_, spent=0)
    with mock.patch.object(stopping, "standing", return_value=[corrected]):
        assert stopping.stop_due(now=life.now) == 0
    assert [ends(lease)[0] for lease in leases] == ["active"] * 3
    assert stop_of(purse).lifted_at == life.now
    assert [subject for _, subject, _ in post(life)] == ["Nothing more is stopped in Kestrel"]


def test_a_stop_found_in_the_last_second_of_its_month_is_not_made_in_the_next(
    kestrel: Home, life: Life
) -> None:
    purse, _ = three(kestrel, life)
    stop, soon = stop_of(purse), life.now + timedelta(days=12)
    assert stopping._stop(stop.pk, kestrel.tenant.pk, soon, over=lambda: True) == 0
    assert stop_of(purse).done_at is None


def test_a_longer_grace_puts_it_off_with_a_letter_and_a_shorter_brings_nothing_forward(
    kestrel: Home, life: Life
) -> None:
    kestrel.member(Role.OWNER)
    terms = Terms(thresholds=(), forecast_thresholds=(), stop_all_at=10, grace_minutes=60)
    purse = budget(kestrel, 500, life, terms=terms)
    runs = life.lease(kestrel, offering(), max_duration_s=4 * HOUR)
    life.run(2000)
    watched(life)
    post(life)
    told = stop_of(purse)
    life.run(1800)
    budget(kestrel, 500, life, terms=replace(terms, grace_minutes=10))
    assert stop_of(purse).due_at == told.due_at, "people were told that moment"
    budget(kestrel, 500, life, terms=replace(terms, grace_minutes=180))
    with as_tenant(kestrel.tenant.pk):
        later = BudgetStop.objects.get(budget=purse, lifted_at=None)
    assert (later.told_at, later.due_at) == (told.told_at, told.told_at + timedelta(minutes=180))
    ((_, subject, _),) = post(life)
    assert subject == f"Everything in Kestrel is stopped at 21 November 2026, {later.due_at:%H:%M} (UTC)"
    life.clock.at = told.due_at
    assert watched(life) == 0
    assert ends(runs)[0] == LeaseState.ACTIVE
    life.clock.at = later.due_at
    assert watched(life) == 1
    budget(kestrel, 500, life, terms=replace(terms, grace_minutes=900))
    assert stop_of(purse).due_at == later.due_at, "it is done"


def test_removing_a_budget_within_its_grace_tells_that_the_stop_is_off(kestrel: Home, life: Life) -> None:
    owner = kestrel.member(Role.OWNER)
    terms = Terms(thresholds=(), forecast_thresholds=(), stop_all_at=10, stop_idle_at=10)
    purse = budget(kestrel, 500, life, terms=terms)
    life.lease(kestrel, offering(), max_duration_s=4 * HOUR)
    life.run(2000)
    watched(life)
    post(life)
    at = f"at 21 November 2026, {stop_of(purse).due_at:%H:%M} (UTC)"
    removed(kestrel, purse, life)
    ((to, subject, text),) = post(life)
    assert (to, subject) == (owner.email, "Nothing more is stopped in Kestrel: its budget is gone")
    assert f"was removed by {kestrel.actor.label}. What it was to stop goes on: " in text
    assert f"all that runs there was to end {at}" in text
    assert f"what is idle there was to end {at}" in text


def test_removing_a_budget_that_announced_nothing_writes_to_nobody(kestrel: Home, life: Life) -> None:
    kestrel.member(Role.OWNER)
    removed(kestrel, budget(kestrel, 500, life), life)
    assert post(life) == []


def removed(owner: Home, purse: Budget, life: Life) -> None:
    with as_tenant(owner.tenant.pk):
        found = Budget.objects.select_related("project").get(pk=purse.pk)
        budgets.remove(found, actor=owner.actor, now=life.now)


def test_who_is_second_finds_it_done(kestrel: Home, life: Life) -> None:
    purse = budget(kestrel, 500, life, terms=Terms(thresholds=(), stop_all_at=10, grace_minutes=0))
    life.lease(kestrel, offering(), max_duration_s=2 * HOUR)
    life.run(2000)
    assert watched(life) == 1
    with as_tenant(kestrel.tenant.pk):
        assert stopping._stop(stop_of(purse).pk, kestrel.tenant.pk, life.now, over=lambda: True) == 0


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


def test_a_letter_of_a_budget_that_nobody_removed_tells_nothing(kestrel: Home, life: Life) -> None:
    with as_tenant(kestrel.tenant.pk):
        queue.put("budget-removed", "bud_gone", tenant_id=kestrel.tenant.pk, now=life.now)
    assert post(life) == []
