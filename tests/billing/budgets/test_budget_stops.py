"""Budget stops: announcement, execution, cancellation and retries."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest
from django.db import DatabaseError

from billing.domain.budgets import BudgetTerms
from billing.models import Budget, BudgetStop
from billing.services.funds.budgets import (
    budget_alerts,
    budget_balances,
    budget_settings,
    budget_stops,
    fair_batches,
)
from billing.services.funds.holds import budget_holds
from billing.services.funds.holds.budget_holds import BudgetExceeded, BudgetStopped
from billing.services.notifications import email_queue
from broker.domain.lifecycle.states import EndReason, LeaseState
from broker.models import Lease, StaleLease
from broker.services.leases.lifecycle import command_retries
from tenants.domain.roles import Role
from tenants.services.rls import system_scope, tenant_scope
from tests.billing.budgets.budget_setup import budget_totals, create_budget, latest_stop, run_budget_watch, send_emails
from tests.simulation import (
    Simulation,
    TenantContext,
    create_tenant,
    held_allocations,
    offering,
    reload_lease,
    simulate,
)

pytestmark = pytest.mark.django_db
HOUR = 3600
ALL_AT_80 = BudgetTerms(thresholds=(), forecast_thresholds=(), stop_all_at=80, grace_minutes=30)
IDLE_AT_5 = BudgetTerms(thresholds=(), forecast_thresholds=(), stop_idle_at=5, grace_minutes=10)
SOFT = BudgetTerms(stop_new_at=None)


@pytest.fixture
def sim() -> Iterator[Simulation]:
    with simulate() as sim:
        yield sim


def state_and_end_reason(lease: Lease) -> tuple[str, str]:
    row = reload_lease(lease)
    return row.state, row.end_reason


def test_a_stop_is_announced_at_its_threshold_and_the_email_states_the_time(
    kestrel: TenantContext, sim: Simulation
) -> None:
    kestrel.create_member(Role.OWNER)
    budget = create_budget(kestrel, 500, sim, terms=ALL_AT_80)
    sim.create_lease(kestrel, offering(), quantity=4)
    sim.run(3590)
    run_budget_watch(sim)
    assert not send_emails(sim), "less than 80 % are spent"
    sim.run(20)
    run_budget_watch(sim)
    due = latest_stop(budget)
    assert due.due_at == due.notified_at + timedelta(minutes=30)
    ((_, subject, text),) = send_emails(sim)
    assert subject == f"All leases in Kestrel will be ended at 21 November 2026, {due.due_at:%H:%M} (UTC)"
    assert "The budget reached 80 %:\nall running and queued leases of the project are ended." in text
    assert f"This happens at 21 November 2026, {due.due_at:%H:%M} (UTC) unless the budget is raised" in text


def test_a_due_stop_ends_all_leases_below_except_stopped_ones(kestrel: TenantContext, sim: Simulation) -> None:
    kestrel.create_member(Role.OWNER)
    child = kestrel.create_project("docking")
    budget = create_budget(kestrel, 1000, sim, terms=BudgetTerms(forecast_thresholds=(), thresholds=(), stop_all_at=10))
    rests = sim.create_lease(kestrel, offering(), volume=sim.create_volume(kestrel).pk, max_duration_s=2 * HOUR)
    sim.stop_lease(rests, kestrel)
    sim.run(30)
    runs = sim.create_lease(kestrel, offering(), project=child, max_duration_s=3 * HOUR)
    other = sim.create_lease(kestrel, offering(), max_duration_s=3 * HOUR)
    sim.run(2000)
    run_budget_watch(sim)
    send_emails(sim)
    with pytest.raises(BudgetStopped) as refusal:
        sim.request_lease(kestrel, offering(), project=child)
    assert "ends all leases here at 2026-11-21" in refusal.value.detail
    sim.run(HOUR - 10)
    assert run_budget_watch(sim) == 0
    sim.run(10)
    assert run_budget_watch(sim) == 2
    assert run_budget_watch(sim) == 0
    sim.run(30)
    assert state_and_end_reason(runs) == state_and_end_reason(other) == ("released", "budget")
    assert held_allocations(runs) == []
    assert state_and_end_reason(rests)[0] == LeaseState.STOPPED
    assert (latest_stop(budget).ended, latest_stop(budget).done_at) == (2, sim.now - timedelta(seconds=30))
    ((_, subject, text),) = send_emails(sim)
    assert subject == "2 leases were ended: the budget of Kestrel is exhausted"
    assert "No new leases start until the budget is raised" in text
    with pytest.raises(BudgetStopped) as refusal:
        sim.start_lease(rests, kestrel)
    assert "ended all leases here" in refusal.value.detail
    with tenant_scope(kestrel.tenant.pk):
        assert isinstance(budget_holds.find_refusal(reload_lease(rests), now=sim.now), BudgetStopped)
    create_budget(kestrel, 100_000, sim)
    sim.start_lease(rests, kestrel)
    assert send_emails(sim) == [], "what was made is not called off"


def test_raising_the_budget_within_the_grace_cancels_the_stop(kestrel: TenantContext, sim: Simulation) -> None:
    kestrel.create_member(Role.OWNER)
    budget = create_budget(kestrel, 500, sim, terms=BudgetTerms(thresholds=(), forecast_thresholds=(), stop_all_at=10))
    runs = sim.create_lease(kestrel, offering(), max_duration_s=4 * HOUR)
    sim.run(2000)
    run_budget_watch(sim)
    send_emails(sim)
    create_budget(kestrel, 501, sim)
    assert latest_stop(budget).lifted_at is None, "10 % of it are spent all the same"
    create_budget(kestrel, 5000, sim)
    assert latest_stop(budget).lifted_at == sim.now
    ((_, subject, text),) = send_emails(sim)
    assert subject == "Budget stop cancelled in Kestrel"
    assert "was changed to €50.00" in text
    sim.run(HOUR)
    assert run_budget_watch(sim) == 0
    assert state_and_end_reason(runs)[0] == LeaseState.ACTIVE
    sim.request_lease(kestrel, offering())


def test_removing_the_stop_from_the_terms_cancels_it_before_its_email(kestrel: TenantContext, sim: Simulation) -> None:
    kestrel.create_member(Role.OWNER)
    create_budget(kestrel, 500, sim, terms=BudgetTerms(thresholds=(), forecast_thresholds=(), stop_all_at=10))
    sim.create_lease(kestrel, offering(), max_duration_s=4 * HOUR)
    sim.run(2000)
    run_budget_watch(sim)
    budget = create_budget(kestrel, 500, sim, terms=BudgetTerms(thresholds=(), forecast_thresholds=()))
    assert latest_stop(budget).lifted_at is not None
    assert [subject for _, subject, _ in send_emails(sim)] == ["Budget stop cancelled in Kestrel"]


def test_a_stop_announced_last_month_is_not_executed_this_month(kestrel: TenantContext, sim: Simulation) -> None:
    sim.clock.at += timedelta(days=9, hours=14)
    create_budget(kestrel, 500, sim, terms=BudgetTerms(thresholds=(), stop_all_at=10, grace_minutes=120))
    runs = sim.create_lease(kestrel, offering(), max_duration_s=4 * HOUR)
    sim.clock.at += timedelta(minutes=50)
    assert run_budget_watch(sim) == 0
    sim.clock.at += timedelta(minutes=125)
    assert budget_stops.execute_due_stops(now=sim.now) == 0
    assert reload_lease(runs).state == LeaseState.ACTIVE
    sim.request_lease(kestrel, offering())
    with tenant_scope(kestrel.tenant.pk):
        assert BudgetStop.objects.filter(done_at=None).count() == 1


def failing_release(at: int, error: BaseException) -> Any:
    """Let the release of the lease with this number fail."""
    real, calls = budget_stops.termination.release_lease, list[Lease]()

    def breaks(lease: Lease, **values: Any) -> None:
        calls.append(lease)
        if len(calls) == at:
            raise error
        real(lease, **values)

    return mock.patch.object(budget_stops.termination, "release_lease", breaks)


def create_due_stop(kestrel: TenantContext, sim: Simulation) -> tuple[Budget, list[Lease]]:
    """Return a budget that is due to end three leases now."""
    kestrel.create_member(Role.OWNER)
    terms = BudgetTerms(thresholds=(), forecast_thresholds=(), stop_all_at=10, grace_minutes=0)
    budget = create_budget(kestrel, 600, sim, terms=terms)
    leases = [sim.create_lease(kestrel, offering(), max_duration_s=2 * HOUR) for _ in range(3)]
    sim.run(1500)
    budget_alerts.check_budgets(now=sim.now)
    send_emails(sim)
    return budget, leases


@pytest.mark.deep
def test_a_crash_during_a_stop_ends_no_lease_and_the_stop_is_repeated(kestrel: TenantContext, sim: Simulation) -> None:
    budget, leases = create_due_stop(kestrel, sim)
    with failing_release(2, KeyboardInterrupt()), pytest.raises(KeyboardInterrupt):
        budget_stops.execute_due_stops(now=sim.now)
    assert [state_and_end_reason(lease)[0] for lease in leases] == ["active"] * 3
    assert budget_stops.execute_due_stops(now=sim.now) == 3
    sim.run(30)
    assert [state_and_end_reason(lease)[1] for lease in leases] == ["budget"] * 3
    assert latest_stop(budget).ended == 3


@pytest.mark.parametrize("error", [DatabaseError("gone"), KeyError("odd"), StaleLease("odd")])
def test_a_lease_that_fails_to_end_blocks_no_other_and_is_reported(
    kestrel: TenantContext, sim: Simulation, error: Exception
) -> None:
    budget, leases = create_due_stop(kestrel, sim)
    with failing_release(2, error):
        assert budget_stops.execute_due_stops(now=sim.now) == 2
    assert sorted(state_and_end_reason(lease)[0] for lease in leases) == ["active", "releasing", "releasing"]
    stop = latest_stop(budget)
    assert (stop.ended, stop.done_at) == (2, None)
    assert "could not be ended yet and is retried" in stop.last_error
    with system_scope():
        assert budget_stops.count_late_stops(now=sim.now) == 0
        assert budget_stops.count_late_stops(now=sim.now + timedelta(minutes=11)) == 1
    assert send_emails(sim) == [], "not all has ended"
    assert budget_stops.execute_due_stops(now=sim.now) == 1
    stop = latest_stop(budget)
    assert (stop.ended, stop.done_at, stop.last_error) == (3, sim.now, "")
    assert [subject for _, subject, _ in send_emails(sim)] == [
        "3 leases were ended: the budget of Kestrel is exhausted"
    ]


def test_a_stop_of_many_leases_continues_in_the_next_round(kestrel: TenantContext, sim: Simulation) -> None:
    budget, _ = create_due_stop(kestrel, sim)
    with mock.patch.object(fair_batches, "TIME_LIMIT_S", -1.0):
        assert budget_stops.execute_due_stops(now=sim.now) == 1
        assert latest_stop(budget).done_at is None
        assert budget_stops.execute_due_stops(now=sim.now) == 1
        assert budget_stops.execute_due_stops(now=sim.now) == 1
    assert (latest_stop(budget).ended, latest_stop(budget).done_at) == (3, sim.now)


def test_stops_of_all_leases_precede_idle_stops_oldest_first(kestrel: TenantContext, sim: Simulation) -> None:
    owners = [kestrel, create_tenant("Osprey"), create_tenant("Merlin")]
    order = list[str]()
    for owner, terms in zip(owners, (IDLE_AT_5, IDLE_AT_5, ALL_AT_80), strict=True):
        create_budget(owner, 100, sim, terms=terms)
        sim.create_lease(owner, offering())
    sim.run(3000)
    budget_alerts.check_budgets(now=sim.now)
    sim.clock.at += HOUR * timedelta(seconds=1)

    def look(stop_id: str, *_: Any, **__: Any) -> int:
        order.append(stop_id)
        return 0

    with (
        mock.patch.object(budget_stops, "_execute_stop", look),
        mock.patch.object(fair_batches, "TIME_LIMIT_S", -1.0),
    ):
        budget_stops.execute_due_stops(now=sim.now)
        assert order == [stop_of_tenant(owners[2], "all")]
        with mock.patch.object(budget_stops, "BATCH_SIZE", 9):
            with tenant_scope(owners[2].tenant.pk):
                BudgetStop.objects.filter(pk=order[0]).update(done_at=sim.now)
            budget_stops.execute_due_stops(now=sim.now)
            budget_stops.execute_due_stops(now=sim.now + timedelta(minutes=1))
            budget_stops.execute_due_stops(now=sim.now + timedelta(minutes=2))
    assert sorted(order[1:3]) == sorted(stop_of_tenant(owner, "idle") for owner in owners[:2])
    assert order[3] == order[1]


def stop_of_tenant(owner: TenantContext, what: str) -> str:
    with tenant_scope(owner.tenant.pk):
        return BudgetStop.objects.get(what=what).pk


def test_a_stop_is_not_executed_once_spend_is_corrected_below_it(kestrel: TenantContext, sim: Simulation) -> None:
    budget, leases = create_due_stop(kestrel, sim)
    with tenant_scope(kestrel.tenant.pk):
        (stands_,) = budget_balances.budget_balances([budget], tenant=kestrel.tenant, now=sim.now)
    corrected = replace(stands_, spent=0)
    with mock.patch.object(budget_stops, "budget_balances", return_value=[corrected]):
        assert budget_stops.execute_due_stops(now=sim.now) == 0
    assert [state_and_end_reason(lease)[0] for lease in leases] == ["active"] * 3
    assert latest_stop(budget).lifted_at == sim.now
    assert [subject for _, subject, _ in send_emails(sim)] == ["Budget stop cancelled in Kestrel"]


def test_a_stop_is_not_executed_after_its_month_ends(kestrel: TenantContext, sim: Simulation) -> None:
    budget, _ = create_due_stop(kestrel, sim)
    stop, soon = latest_stop(budget), sim.now + timedelta(days=12)
    assert budget_stops._execute_stop(stop.pk, kestrel.tenant.pk, soon, over=lambda: True) == 0
    assert latest_stop(budget).done_at is None


def test_only_a_longer_grace_period_moves_an_announced_stop(kestrel: TenantContext, sim: Simulation) -> None:
    kestrel.create_member(Role.OWNER)
    terms = BudgetTerms(thresholds=(), forecast_thresholds=(), stop_all_at=10, grace_minutes=60)
    budget = create_budget(kestrel, 500, sim, terms=terms)
    runs = sim.create_lease(kestrel, offering(), max_duration_s=4 * HOUR)
    sim.run(2000)
    run_budget_watch(sim)
    send_emails(sim)
    stop = latest_stop(budget)
    sim.run(1800)
    create_budget(kestrel, 500, sim, terms=replace(terms, grace_minutes=10))
    assert latest_stop(budget).due_at == stop.due_at, "people were told that moment"
    create_budget(kestrel, 500, sim, terms=replace(terms, grace_minutes=180))
    with tenant_scope(kestrel.tenant.pk):
        later = BudgetStop.objects.get(budget=budget, lifted_at=None)
    assert (later.notified_at, later.due_at) == (stop.notified_at, stop.notified_at + timedelta(minutes=180))
    ((_, subject, _),) = send_emails(sim)
    assert subject == f"All leases in Kestrel will be ended at 21 November 2026, {later.due_at:%H:%M} (UTC)"
    sim.clock.at = stop.due_at
    assert run_budget_watch(sim) == 0
    assert state_and_end_reason(runs)[0] == LeaseState.ACTIVE
    sim.clock.at = later.due_at
    assert run_budget_watch(sim) == 1
    create_budget(kestrel, 500, sim, terms=replace(terms, grace_minutes=900))
    assert latest_stop(budget).due_at == later.due_at, "it is done"


def test_removing_a_budget_in_its_grace_period_emails_the_cancelled_stops(
    kestrel: TenantContext, sim: Simulation
) -> None:
    owner = kestrel.create_member(Role.OWNER)
    terms = BudgetTerms(thresholds=(), forecast_thresholds=(), stop_all_at=10, stop_idle_at=10)
    budget = create_budget(kestrel, 500, sim, terms=terms)
    sim.create_lease(kestrel, offering(), max_duration_s=4 * HOUR)
    sim.run(2000)
    run_budget_watch(sim)
    send_emails(sim)
    at = f"at 21 November 2026, {latest_stop(budget).due_at:%H:%M} (UTC)"
    removed(kestrel, budget, sim)
    ((to, subject, text),) = send_emails(sim)
    assert (to, subject) == (owner.email, "Budget of Kestrel removed, stop cancelled")
    assert f"{kestrel.actor.label} removed the budget of Kestrel. Cancelled: " in text
    assert f"the stop of all leases {at}" in text
    assert f"the stop of idle leases {at}" in text


def test_removing_a_budget_without_an_announced_stop_sends_no_email(kestrel: TenantContext, sim: Simulation) -> None:
    kestrel.create_member(Role.OWNER)
    removed(kestrel, create_budget(kestrel, 500, sim), sim)
    assert send_emails(sim) == []


def removed(owner: TenantContext, budget: Budget, sim: Simulation) -> None:
    with tenant_scope(owner.tenant.pk):
        found = Budget.objects.select_related("project").get(pk=budget.pk)
        budget_settings.remove_budget(found, actor=owner.actor, now=sim.now)


def test_an_executed_stop_is_not_executed_again_by_a_second_worker(kestrel: TenantContext, sim: Simulation) -> None:
    budget = create_budget(kestrel, 500, sim, terms=BudgetTerms(thresholds=(), stop_all_at=10, grace_minutes=0))
    sim.create_lease(kestrel, offering(), max_duration_s=2 * HOUR)
    sim.run(2000)
    assert run_budget_watch(sim) == 1
    with tenant_scope(kestrel.tenant.pk):
        assert budget_stops._execute_stop(latest_stop(budget).pk, kestrel.tenant.pk, sim.now, over=lambda: True) == 0


def test_a_stop_ends_a_batch_that_waits_for_its_next_run(kestrel: TenantContext, sim: Simulation) -> None:
    create_budget(kestrel, 500, sim, terms=BudgetTerms(thresholds=(), stop_all_at=10, grace_minutes=0))
    batch = {"workload": "batch", "image": "train", "command": "train", "retries": 3}
    lease = sim.create_lease(kestrel, offering(), max_duration_s=2 * HOUR, **batch)
    sim.run(2000)
    with tenant_scope(kestrel.tenant.pk):
        assert command_retries.end_run(reload_lease(lease), text="exit code 1", ended_at=sim.now, now=sim.now)
    assert reload_lease(lease).state == LeaseState.STOPPING
    assert run_budget_watch(sim) == 1
    sim.run_with_sweeps(120)
    assert state_and_end_reason(lease) == ("released", "budget")


def test_a_stop_of_idle_leases_ends_only_idle_ones(kestrel: TenantContext, sim: Simulation) -> None:
    kestrel.create_member(Role.OWNER)
    budget = create_budget(kestrel, 2000, sim, terms=IDLE_AT_5)
    idle, works, new = (sim.create_lease(kestrel, offering(), max_duration_s=4 * HOUR) for _ in range(3))
    sim.run(1200)
    mark_degraded(idle, sim, minutes=20)
    mark_degraded(new, sim, minutes=3)
    run_budget_watch(sim)
    ((_, subject, text),) = send_emails(sim)
    assert subject.startswith("Idle leases in Kestrel will be ended at")
    assert "leases that were idle for 15 minutes are ended" in text
    sim.request_lease(kestrel, offering(), max_duration_s=600)
    sim.clock.at += timedelta(minutes=10)
    assert run_budget_watch(sim) == 0, "nobody has seen it lately"
    mark_all_seen(sim, kestrel)
    assert run_budget_watch(sim) == 1
    assert state_and_end_reason(idle) == ("releasing", EndReason.BUDGET)
    assert state_and_end_reason(works)[0] == state_and_end_reason(new)[0] == "active"
    sim.clock.at += timedelta(minutes=5)
    mark_all_seen(sim, kestrel)
    assert run_budget_watch(sim) == 1, "it is looked at each minute"
    assert (latest_stop(budget, "idle").ended, latest_stop(budget, "idle").done_at) == (2, None)
    create_budget(kestrel, 100_000, sim)
    assert latest_stop(budget, "idle").lifted_at == sim.now
    assert [subject for _, subject, _ in send_emails(sim)] == ["Budget stop cancelled in Kestrel"]


def mark_all_seen(sim: Simulation, owner: TenantContext) -> None:
    """Let the cluster have reported every lease just now."""
    with tenant_scope(owner.tenant.pk):
        Lease.objects.filter(state=LeaseState.ACTIVE).update(seen_at=sim.now)


def mark_degraded(lease: Lease, sim: Simulation, *, minutes: int) -> None:
    """Let a lease have been degraded for this long."""
    with tenant_scope(lease.tenant_id):
        since = sim.now - timedelta(minutes=minutes)
        Lease.objects.filter(pk=lease.pk).update(conditions={"degraded": "it loads"}, degraded_since=since)


def test_a_soft_budget_admits_leases_beyond_it_and_counts_them(kestrel: TenantContext, sim: Simulation) -> None:
    budget = create_budget(kestrel, 100, sim, terms=SOFT)
    for _ in range(3):
        sim.request_lease(kestrel, offering())
    assert budget_totals(budget, sim) == (0, 300, 0)
    create_budget(kestrel, 100, sim, terms=BudgetTerms())
    with pytest.raises(BudgetExceeded):
        sim.request_lease(kestrel, offering())


def test_hard_and_soft_budgets_of_parent_and_child_apply_independently(kestrel: TenantContext, sim: Simulation) -> None:
    child = kestrel.create_project("docking")
    create_budget(kestrel, 100, sim, terms=SOFT)
    create_budget(kestrel, 200, sim, project=child)
    sim.request_lease(kestrel, offering(), quantity=2, project=child)
    with pytest.raises(BudgetExceeded):
        sim.request_lease(kestrel, offering(), project=child)
    sim.request_lease(kestrel, offering(), quantity=3)


def test_new_leases_are_blocked_at_a_configured_percentage(kestrel: TenantContext, sim: Simulation) -> None:
    budget = create_budget(kestrel, 1000, sim, terms=BudgetTerms(stop_new_at=30))
    for _ in range(3):
        sim.request_lease(kestrel, offering())
    with pytest.raises(BudgetExceeded) as refusal:
        sim.request_lease(kestrel, offering())
    assert "is €10.00, of which leases can use €3.00; €0.00 of it is left" in refusal.value.detail
    assert budget_totals(budget, sim)[2] == 0


def test_emails_of_stops_whose_budget_is_gone_are_not_sent(kestrel: TenantContext, sim: Simulation) -> None:
    kestrel.create_member(Role.OWNER)
    budget = create_budget(
        kestrel,
        500,
        sim,
        terms=BudgetTerms(thresholds=(), forecast_thresholds=(), stop_all_at=10, grace_minutes=0),
    )
    sim.create_lease(kestrel, offering(), max_duration_s=2 * HOUR)
    sim.run(2000)
    assert run_budget_watch(sim) == 1
    with tenant_scope(kestrel.tenant.pk):
        budget_settings.remove_budget(
            Budget.objects.select_related("project").get(pk=budget.pk), actor=kestrel.actor, now=sim.now
        )
    assert send_emails(sim) == []


def test_an_announced_stop_is_not_announced_again_at_later_thresholds(kestrel: TenantContext, sim: Simulation) -> None:
    kestrel.create_member(Role.OWNER)
    create_budget(kestrel, 500, sim, terms=BudgetTerms(thresholds=(20,), forecast_thresholds=(), stop_all_at=10))
    sim.create_lease(kestrel, offering(), max_duration_s=2 * HOUR)
    sim.run(2000)
    run_budget_watch(sim)
    assert len(send_emails(sim)) == 1
    sim.run(1700)
    run_budget_watch(sim)
    assert [subject for _, subject, _ in send_emails(sim)] == ["The budget of Kestrel reached 20 %"]


def test_a_removal_email_without_a_recorded_removal_is_not_sent(kestrel: TenantContext, sim: Simulation) -> None:
    with tenant_scope(kestrel.tenant.pk):
        email_queue.enqueue_email("budget-removed", "bud_gone", tenant_id=kestrel.tenant.pk, now=sim.now)
    assert send_emails(sim) == []
