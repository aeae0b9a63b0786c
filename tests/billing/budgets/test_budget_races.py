"""Concurrent requests, extensions and stops on one budget."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connections

from billing.domain.budgets import BudgetTerms
from billing.models import Budget, BudgetAlert, BudgetStop, QueuedEmail, TokenCapDay
from billing.services.funds.budgets import budget_alerts, budget_settings, budget_stops
from billing.services.funds.holds import hold_settlement
from billing.services.funds.holds.budget_holds import BudgetExceeded, BudgetStopped
from billing.services.funds.holds.token_cap_holds import TokenCapReached
from billing.services.funds.holds.token_caps import TokenCapRequest as Cap
from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease
from broker.services.leases.lease_requests import LeaseRequest, request_lease
from broker.services.leases.lifecycle import extension
from broker.services.leases.lifecycle.termination import LeaseAlreadyOver
from ports import clock, outbox
from tenants.models import Project
from tenants.services.actors import Actor
from tenants.services.rls import tenant_scope
from tests.billing.budgets.budget_setup import budget_totals, create_budget
from tests.billing.budgets.test_spend_caps import create_capped_token
from tests.billing.histories import EURO, LONG_AGO, add_lease_history, set_price
from tests.database import OwnDatabase
from tests.simulation import NOW, TenantContext, create_fleet, create_tenant, offering

MANY, ROOM = 32, 7


def run_concurrently(acts: Sequence[Callable[[], Any]]) -> list[bool]:
    """Run all on own connections at once; return which succeeded."""
    start = threading.Barrier(len(acts))

    def one(act: Any) -> bool:
        try:
            start.wait(60)
            act()
        except (BudgetExceeded, BudgetStopped, TokenCapReached, LeaseAlreadyOver):
            return False
        else:
            return True
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(one, acts))


@pytest.fixture
def kestrel(own_database: OwnDatabase, settings: Any) -> Iterator[TenantContext]:
    from config.env import EnvironmentSettings

    settings.LEASE_GATES = EnvironmentSettings.model_fields["lease_gates"].default
    with clock.frozen_at(NOW), outbox.captured(lambda *hint: None):
        create_fleet()
        set_price(offering(), EURO, since=LONG_AGO)
        yield create_tenant("Kestrel")


def ask(owner: TenantContext, project: Project, what: str, actor: Actor | None = None) -> Lease:
    with tenant_scope(owner.tenant.pk):
        wanted = LeaseRequest(offering_id=what, name="one of many", max_duration_s=3600)
        return request_lease(wanted, project=project, actor=actor or owner.actor, now=NOW)


def extend(owner: TenantContext, lease: Lease) -> Lease:
    with tenant_scope(owner.tenant.pk):
        return extension.extend_lease(lease, more_s=3600, actor=owner.actor, now=NOW)


@pytest.mark.deep
def test_many_concurrent_requests_hold_no_more_than_the_budget(kestrel: TenantContext) -> None:
    left, right = kestrel.create_project("left"), kestrel.create_project("right")
    root, small = create_budget(kestrel, ROOM * 100), create_budget(kestrel, 200, project=left)
    create_budget(kestrel, 10_000, project=right)
    requests = [partial(ask, kestrel, (left, right)[n % 2], offering().pk) for n in range(MANY)]
    assert sum(run_concurrently(requests)) == ROOM
    assert budget_totals(root) == (0, ROOM * 100, 0)
    assert budget_totals(small)[1] <= 200


@pytest.mark.deep
def test_a_budget_set_during_concurrent_requests_counts_every_lease(kestrel: TenantContext) -> None:
    requests: list[Callable[[], Any]] = [partial(ask, kestrel, kestrel.project, offering().pk) for _ in range(MANY)]
    requests.insert(MANY // 2, partial(create_budget, kestrel, ROOM * 100))
    begun = sum(run_concurrently(requests)) - 1
    assert budget_totals(create_budget(kestrel, ROOM * 100))[:2] == (0, begun * 100)


def test_concurrent_extensions_hold_no_more_than_the_budget(kestrel: TenantContext) -> None:
    root = create_budget(kestrel, 600)
    leases = [ask(kestrel, kestrel.project, offering().pk) for _ in range(4)]
    assert sum(run_concurrently([partial(extend, kestrel, lease) for lease in leases * 2])) == 2
    assert budget_totals(root) == (0, 600, 0)


@pytest.mark.deep
def test_a_budget_removed_during_lease_requests_fails_none_of_them(kestrel: TenantContext) -> None:
    root = create_budget(kestrel, 100_000)
    requests: list[Callable[[], Any]] = [partial(ask, kestrel, kestrel.project, offering().pk) for _ in range(MANY)]
    requests.insert(MANY // 2, partial(remove, kestrel, root))
    assert all(run_concurrently(requests))
    again = create_budget(kestrel, 100_000)
    assert budget_totals(again)[:2] == (0, MANY * 100)


def remove(owner: TenantContext, one: Budget) -> None:
    with tenant_scope(owner.tenant.pk):
        budget_settings.remove_budget(
            Budget.objects.select_related("project").get(pk=one.pk), actor=owner.actor, now=NOW
        )


@pytest.mark.deep
def test_concurrent_settlements_and_extensions_do_not_deadlock(kestrel: TenantContext) -> None:
    root = create_budget(kestrel, 100_000)
    leases = [ask(kestrel, kestrel.project, offering().pk) for _ in range(6)]
    later = NOW + timedelta(minutes=6)
    looks: list[Callable[[], Any]] = [partial(hold_settlement.settle_holds, now=later) for _ in range(4)]
    assert all(run_concurrently(looks + [partial(extend, kestrel, lease) for lease in leases]))
    assert budget_totals(root) == (0, 1200, 98_800)


SOFT, HARD = BudgetTerms(stop_new_at=None), BudgetTerms()
GONE = BudgetTerms(thresholds=(50,), forecast_thresholds=(), stop_all_at=10, grace_minutes=0)


@pytest.mark.deep
def test_a_hard_budget_below_a_soft_one_is_never_overspent(kestrel: TenantContext) -> None:
    left, right = kestrel.create_project("left"), kestrel.create_project("right")
    root = create_budget(kestrel, 100, terms=SOFT)
    hard, part = (
        create_budget(kestrel, 300, project=left),
        create_budget(kestrel, 1000, project=right, terms=BudgetTerms(stop_new_at=40)),
    )
    requests = [partial(ask, kestrel, (left, right)[n % 2], offering().pk) for n in range(MANY)]
    assert sum(run_concurrently(requests)) == 7
    assert (budget_totals(hard)[1], budget_totals(part)[1], budget_totals(root)[1]) == (300, 400, 700)


@pytest.mark.deep
def test_no_lease_starts_beyond_a_budget_once_it_becomes_hard(kestrel: TenantContext) -> None:
    root = create_budget(kestrel, 500, terms=SOFT)
    requests: list[Callable[[], Any]] = [partial(ask, kestrel, kestrel.project, offering().pk) for _ in range(MANY)]
    requests.insert(MANY // 2, partial(create_budget, kestrel, 500, terms=HARD))
    begun = sum(run_concurrently(requests)) - 1
    assert budget_totals(root)[1] == begun * 100
    if begun * 100 >= 500:
        assert run_concurrently([partial(ask, kestrel, kestrel.project, offering().pk)]) == [False]


def create_spent_leases(owner: TenantContext) -> list[Lease]:
    """Create three leases that ran for forty minutes."""

    begun = NOW - timedelta(minutes=40)
    steps = [
        (begun - timedelta(seconds=20), LeaseState.REQUESTED),
        (begun - timedelta(seconds=10), LeaseState.QUEUED),
        (begun - timedelta(seconds=5), LeaseState.PROVISIONING),
        (begun, LeaseState.ACTIVE),
    ]
    leases = [add_lease_history(owner.project, offering(), steps) for _ in range(3)]
    with tenant_scope(owner.tenant.pk):
        Lease.objects.filter(pk__in=[lease.pk for lease in leases]).update(
            active_at=begun, ends_at=NOW + timedelta(hours=3), max_duration_s=13_000
        )
    return leases


def test_concurrent_budget_checks_alert_once_and_queue_one_email(kestrel: TenantContext) -> None:
    create_spent_leases(kestrel)
    create_budget(kestrel, 300, terms=BudgetTerms(stop_all_at=60, stop_idle_at=60))
    assert all(run_concurrently([partial(budget_alerts.check_budgets, now=NOW) for _ in range(8)]))
    with tenant_scope(kestrel.tenant.pk):
        assert sorted(BudgetAlert.objects.values_list("measure", "percent")) == [
            ("forecast", 80),
            ("forecast", 100),
            ("spent", 50),
        ]
        assert BudgetStop.objects.count() == 2
        kinds = sorted(QueuedEmail.objects.values_list("kind", flat=True))
    assert kinds == ["budget-alert", "budget-alert", "budget-stop", "budget-stop"]


def test_leases_requested_during_a_budget_stop_end_too(kestrel: TenantContext) -> None:
    leases = create_spent_leases(kestrel)
    create_budget(kestrel, 2000, terms=GONE)
    budget_alerts.check_budgets(now=NOW)
    acts: list[Callable[[], Any]] = [partial(budget_stops.execute_due_stops, now=NOW) for _ in range(3)]
    acts += [partial(ask, kestrel, kestrel.project, offering().pk) for _ in range(12)]
    acts += [partial(extend, kestrel, lease) for lease in leases]
    assert all(run_concurrently(acts)[:3])
    with tenant_scope(kestrel.tenant.pk):
        states = set(Lease.objects.values_list("state", "end_reason"))
        assert states <= {("releasing", "budget"), ("released", "budget")}, states
        stop = BudgetStop.objects.get()
        assert (stop.done_at, stop.ended) == (NOW, 3), "each was ended once"
        assert QueuedEmail.objects.filter(kind="budget-stopped").count() == 1


def test_raising_a_budget_during_its_stop_ends_all_leases_or_none(kestrel: TenantContext) -> None:
    leases = create_spent_leases(kestrel)
    create_budget(kestrel, 2000, terms=GONE)
    budget_alerts.check_budgets(now=NOW)
    acts: list[Callable[[], Any]] = [
        partial(budget_stops.execute_due_stops, now=NOW),
        partial(create_budget, kestrel, 100_000),
    ]
    assert all(run_concurrently(acts))
    with tenant_scope(kestrel.tenant.pk):
        stop = BudgetStop.objects.get()
        ended = Lease.objects.exclude(state="active").count()
    assert stop.lifted_at == NOW
    assert ended == (len(leases) if stop.done_at else 0)


@pytest.mark.deep
def test_many_concurrent_requests_hold_no_more_than_the_token_cap(kestrel: TenantContext) -> None:
    root = create_budget(kestrel, 10_000)
    daily, in_all = (
        create_capped_token(kestrel, Cap(daily_minor=300)),
        create_capped_token(kestrel, Cap(total_minor=400), name="other"),
    )
    requests = [partial(ask, kestrel, kestrel.project, offering().pk, (daily, in_all)[n % 2]) for n in range(MANY)]
    looks: list[Callable[[], Any]] = [partial(hold_settlement.settle_holds, now=NOW) for _ in range(2)]
    assert sum(run_concurrently([*requests, *looks])) == 3 + 4 + 2
    assert budget_totals(root)[1] == 700
    with tenant_scope(kestrel.tenant.pk):
        assert sorted(int(row.taken_num) // (36 * 10**9) for row in TokenCapDay.objects.all()) == [300, 400]
