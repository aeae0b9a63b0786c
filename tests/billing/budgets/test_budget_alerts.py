"""Budget alerts: thresholds, forecast, e-mails and recipients."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest
from django.db import DatabaseError

from billing.domain.budgets import BudgetTerms
from billing.models import Budget, BudgetAlert, QueuedEmail
from billing.services.funds.budgets import budget_alerts, budget_balances, budget_settings, fair_batches
from tenants.domain.roles import Role
from tenants.services.rls import tenant_scope
from tests.billing.budgets.budget_setup import (
    alerts_of,
    budget_totals,
    create_budget,
    run_budget_watch,
    run_metering,
    send_emails,
)
from tests.billing.histories import EURO, set_price
from tests.simulation import Simulation, TenantContext, create_tenant, offering, simulate

pytestmark = pytest.mark.django_db
HOUR = 3600
SPENT_ONLY = BudgetTerms(forecast_thresholds=())


@pytest.fixture
def sim() -> Iterator[Simulation]:
    with simulate() as sim:
        yield sim


def test_each_threshold_alerts_once_and_only_the_highest_sends_an_email(
    kestrel: TenantContext, sim: Simulation
) -> None:
    kestrel.create_member(Role.OWNER)
    budget = create_budget(kestrel, 100, sim, terms=SPENT_ONLY)
    sim.create_lease(kestrel, offering())
    sim.run(1780)
    run_budget_watch(sim)
    assert alerts_of(budget) == [], "49.5 % are no 50 %"
    sim.run(20)
    run_budget_watch(sim)
    run_budget_watch(sim)
    assert alerts_of(budget) == [("spent", 50, True)]
    assert [subject for _, subject, _ in send_emails(sim)] == ["The budget of Kestrel reached 50 %"]
    sim.run(1799)
    run_budget_watch(sim)
    assert alerts_of(budget) == [("spent", 50, True), ("spent", 80, True), ("spent", 100, True)]
    ((to, subject, text),) = send_emails(sim)
    assert subject == "The budget of Kestrel reached 100 %"
    assert to.startswith("owner-")
    assert "€1.00 is spent of the €1.00 that Kestrel may cost in November 2026: 100 % of its budget." in text
    assert "At 100 %, including reservations, new leases that exceed it are refused." in text
    assert send_emails(sim) == [], "it is sent once"


def test_the_forecast_adds_running_leases_until_their_end(kestrel: TenantContext, sim: Simulation) -> None:
    kestrel.create_member(Role.BILLING)
    budget = create_budget(kestrel, 400, sim)
    sim.create_lease(kestrel, offering(), max_duration_s=3 * HOUR)
    sim.request_lease(kestrel, offering())
    sim.run(3)
    assert budget_totals(budget, sim)[:2] == (0, 400)
    with tenant_scope(kestrel.tenant.pk):
        (one,) = budget_balances.budget_balances([Budget.objects.get()], tenant=kestrel.tenant, now=sim.now)
    assert one.forecast in (300, 400), "what waits is no part of it, unless it began meanwhile"
    sim.run(60)
    run_budget_watch(sim)
    assert ("forecast", 80, True) in alerts_of(budget)
    ((_, subject, text),) = send_emails(sim)
    assert subject == "The budget of Kestrel is forecast to reach 100 %"
    assert "The month is forecast to end at €4.00 of the €4.00" in text
    assert "running leases until they end or the month ends" in text


def test_a_queued_lease_does_not_count_in_the_forecast(kestrel: TenantContext, sim: Simulation) -> None:
    budget = create_budget(kestrel, 400, sim)
    sim.request_lease(kestrel, offering(), max_duration_s=4 * HOUR)
    with tenant_scope(kestrel.tenant.pk):
        (one,) = budget_balances.budget_balances([Budget.objects.get()], tenant=kestrel.tenant, now=sim.now)
    assert (one.forecast, one.held) == (0, 400)
    assert budget_alerts.check_budgets(now=sim.now) == 1, "all of it is taken, so it is looked at"
    assert alerts_of(budget) == []


def test_raising_a_budget_clears_alerts_that_can_be_raised_again(kestrel: TenantContext, sim: Simulation) -> None:
    kestrel.create_member(Role.OWNER)
    budget = create_budget(kestrel, 100, sim, terms=SPENT_ONLY)
    sim.create_lease(kestrel, offering(), max_duration_s=3600)
    sim.run(3000)
    run_budget_watch(sim)
    assert [percent for _, percent, _ in alerts_of(budget)] == [50, 80]
    send_emails(sim)
    create_budget(kestrel, 150, sim)
    assert alerts_of(budget) == [("spent", 50, True), ("spent", 80, False)], "55 % of it are still spent"
    run_budget_watch(sim)
    assert len(alerts_of(budget)) == 2
    assert send_emails(sim) == []
    sim.run(600)
    create_budget(kestrel, 120, sim)
    run_budget_watch(sim)
    assert alerts_of(budget)[2:] == [("spent", 80, True)]
    assert [subject for _, subject, _ in send_emails(sim)] == ["The budget of Kestrel reached 80 %"]


def test_lowering_a_budget_raises_due_alerts_and_clears_none(kestrel: TenantContext, sim: Simulation) -> None:
    budget = create_budget(kestrel, 200, sim, terms=SPENT_ONLY)
    sim.create_lease(kestrel, offering())
    sim.run(3590)
    run_budget_watch(sim)
    create_budget(kestrel, 110, sim)
    run_budget_watch(sim)
    assert alerts_of(budget) == [("spent", 80, True)] or [p for _, p, held in alerts_of(budget) if held] == [50, 80]


def test_an_added_threshold_already_passed_is_recorded_without_an_email(
    kestrel: TenantContext, sim: Simulation
) -> None:
    kestrel.create_member(Role.OWNER)
    budget = create_budget(kestrel, 100, sim, terms=SPENT_ONLY)
    sim.create_lease(kestrel, offering())
    sim.run(3000)
    run_budget_watch(sim)
    send_emails(sim)
    create_budget(kestrel, 100, sim, terms=BudgetTerms(thresholds=(20, 50, 80, 100), forecast_thresholds=()))
    run_budget_watch(sim)
    assert ("spent", 20, True) in alerts_of(budget)
    assert send_emails(sim) == []


def test_budget_alerts_restart_each_month(kestrel: TenantContext, sim: Simulation) -> None:
    budget = create_budget(kestrel, 100, sim, terms=SPENT_ONLY)
    sim.create_lease(kestrel, offering())
    sim.run(1900)
    run_budget_watch(sim)
    sim.clock.at += timedelta(days=12)
    run_budget_watch(sim)
    assert alerts_of(budget) == [("spent", 50, True)]
    create_budget(kestrel, 300, sim)
    assert alerts_of(budget) == [("spent", 50, True)], "what is over is not lifted"


def test_a_zero_budget_alerts_as_soon_as_anything_is_spent(kestrel: TenantContext, sim: Simulation) -> None:
    sim.create_lease(kestrel, offering())
    budget = create_budget(kestrel, 0, sim, terms=SPENT_ONLY)
    sim.run(1)
    run_budget_watch(sim)
    assert alerts_of(budget) == []
    sim.run(60)
    run_budget_watch(sim)
    assert [percent for _, percent, _ in alerts_of(budget)] == [50, 80, 100]


def test_a_failed_check_sends_no_alert_until_the_next_round(kestrel: TenantContext, sim: Simulation) -> None:
    budget = create_budget(kestrel, 100, sim)
    sim.create_lease(kestrel, offering())
    sim.run(1900)
    for odd in (DatabaseError("odd"), KeyError("odd")):
        with mock.patch.object(budget_alerts, "budget_balances", side_effect=odd):
            assert budget_alerts.check_budgets(now=sim.now) == 0
    assert alerts_of(budget) == []
    run_budget_watch(sim)
    assert alerts_of(budget) != []


def test_tenants_beyond_one_round_are_checked_in_the_next_rounds(kestrel: TenantContext, sim: Simulation) -> None:
    owners = [kestrel, create_tenant("Osprey"), create_tenant("Merlin")]
    tenant_budgets = [create_budget(owner, 100, sim) for owner in owners]
    for owner in owners:
        sim.create_lease(owner, offering(), max_duration_s=HOUR)
    sim.run(1900)
    with mock.patch.object(fair_batches, "TIME_LIMIT_S", -1.0):
        for n in range(1, 4):
            sim.clock.at += timedelta(minutes=1)
            assert budget_alerts.check_budgets(now=sim.now) == 1
            assert sum(bool(alerts_of(budget)) for budget in tenant_budgets) == n


def test_budget_emails_reach_admins_and_owners_above_the_project_and_payers(
    kestrel: TenantContext, sim: Simulation
) -> None:
    child, beside = kestrel.create_project("docking"), kestrel.create_project("beside")
    wanted = {
        kestrel.create_member(role, where).email
        for role, where in (
            (Role.OWNER, None),
            (Role.BILLING, None),
            (Role.ADMIN, None),
            (Role.ADMIN, kestrel.project),
            (Role.OWNER, child),
        )
    }
    for role, where in ((Role.MEMBER, None), (Role.ADMIN, beside), (Role.VIEWER, child)):
        kestrel.create_member(role, where)
    create_budget(kestrel, 100, sim, project=child, terms=SPENT_ONLY)
    sim.create_lease(kestrel, offering(), project=child)
    sim.run(1900)
    run_budget_watch(sim)
    assert {to for to, _, _ in send_emails(sim)} == wanted


def test_an_email_about_a_budget_that_is_gone_is_not_sent(kestrel: TenantContext, sim: Simulation) -> None:
    kestrel.create_member(Role.OWNER)
    budget = create_budget(kestrel, 100, sim, terms=SPENT_ONLY)
    sim.create_lease(kestrel, offering())
    sim.run(1900)
    run_budget_watch(sim)
    with tenant_scope(kestrel.tenant.pk):
        budget_settings.remove_budget(
            Budget.objects.select_related("project").get(pk=budget.pk), actor=kestrel.actor, now=sim.now
        )
        assert not BudgetAlert.objects.exists()
    assert send_emails(sim) == []
    with tenant_scope(kestrel.tenant.pk):
        letter = QueuedEmail.objects.get()
    assert (letter.undelivered_reason, letter.sent_at, letter.due_at) == ("outdated", None, None), "nobody tries again"


def test_a_price_increase_beyond_a_hard_budget_raises_a_forecast_alert(kestrel: TenantContext, sim: Simulation) -> None:
    budget = create_budget(kestrel, 100, sim, terms=BudgetTerms(thresholds=(100, 150), forecast_thresholds=(120,)))
    sim.create_lease(kestrel, offering())
    set_price(offering(), 2 * EURO, since=sim.now.replace(microsecond=0) + timedelta(minutes=1))
    sim.run(600)
    run_metering(sim)
    run_budget_watch(sim)
    assert alerts_of(budget) == [("forecast", 120, True)]


@pytest.mark.parametrize(
    ("terms", "then"),
    [
        (BudgetTerms(stop_new_at=None), "The limit blocks nothing: new leases can still start."),
        (
            BudgetTerms(stop_idle_at=90),
            "At 90 % leases that were idle for 15 minutes are ended, 60 minutes",
        ),
        (
            BudgetTerms(stop_all_at=120, grace_minutes=5),
            "At 120 % all running and queued leases of the project are ended, 5 minutes after an e-mail",
        ),
    ],
)
def test_an_alert_email_states_the_consequences_of_the_budget(
    kestrel: TenantContext, sim: Simulation, terms: BudgetTerms, then: str
) -> None:
    kestrel.create_member(Role.OWNER)
    create_budget(kestrel, 100, sim, terms=terms)
    sim.create_lease(kestrel, offering())
    sim.run(1900)
    run_budget_watch(sim)
    said = [text for _, subject, text in send_emails(sim) if " reached " in subject]
    assert then in said[0]


def test_a_change_of_budget_terms_alone_is_audited_once(kestrel: TenantContext, sim: Simulation) -> None:
    from tenants.models import AuditEvent

    create_budget(kestrel, 100, sim)
    create_budget(kestrel, 100, sim, terms=BudgetTerms(stop_new_at=None, stop_all_at=90))
    create_budget(kestrel, 100, sim, terms=BudgetTerms(stop_new_at=None, stop_all_at=90))
    with tenant_scope(kestrel.tenant.pk):
        rows: list[Any] = list(
            AuditEvent.objects.filter(action="budget.set").order_by("pk").values_list("detail", flat=True)
        )
    assert len(rows) == 2
    assert {name: rows[1][name] for name in ("new leases blocked at", "all leases end at")} == {
        "new leases blocked at": "never",
        "all leases end at": "90 %",
    }
