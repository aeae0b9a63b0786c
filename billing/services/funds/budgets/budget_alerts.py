"""Budget alerts: notify people of every reached share once, and announce stops."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

from billing.domain.budgets import BudgetMeasure, StopScope, has_reached
from billing.domain.lease_holds import exact_from_minor
from billing.models import BillingPeriod, Budget, BudgetAlert, BudgetStop
from billing.services.funds.budgets.budget_balances import BudgetBalance, budget_balances
from billing.services.funds.budgets.budget_increases import measured_amount
from billing.services.funds.budgets.budget_settings import lock_tenant_funds
from billing.services.funds.budgets.fair_batches import TimeIsOver, process_fairly
from billing.services.notifications import email_queue
from billing.services.periods import billing_periods
from ports.postgres.sql_statements import query_rows
from tenants.models import Tenant
from tenants.services.rls import system_scope, tenant_scope

BEGINNING_OF_TIME = datetime.min.replace(tzinfo=UTC)


class _BudgetShares(NamedTuple):
    """What a budget's current month holds, and its lowest shares not announced."""

    tenant_id: str
    checked_at: datetime | None
    limit_minor: int
    currency: str
    taken_num: Decimal
    next_alert: int | None
    next_stop: int | None


def check_budgets(*, now: datetime) -> int:
    """Send due alerts and announce stops; return how many tenants were checked.

    The tenant that was not checked for longest comes first, so that every tenant is reached.
    """
    with system_scope():
        found = [(tenant_id, tenant_id) for tenant_id in _tenants_near_threshold(now)]

    def check_tenant(_: str, tenant_id: str, over: TimeIsOver) -> int:
        _record_check(tenant_id, now)
        _check_tenant(tenant_id, now)
        return 1

    return sum(process_fairly(found, check_tenant, trouble="budgets could not be checked"))


def _record_check(tenant_id: str, now: datetime) -> None:
    """Record the check before it begins, so that a crashing tenant does not stay first.

    Locked budgets are skipped.
    """
    with tenant_scope(tenant_id):
        free = Budget.objects.select_for_update(skip_locked=True).filter(tenant=tenant_id).order_by("pk")
        Budget.objects.filter(pk__in=[each.pk for each in free]).update(checked_at=now)


def _tenants_near_threshold(now: datetime) -> list[str]:
    """Return tenants with a budget that may have reached an unannounced share; one query.

    In the order of their checks.
    """
    near = {
        row.tenant_id: row.checked_at
        for row in map(_BudgetShares._make, query_rows("billing/funds/budgets_near_threshold", now=now))
        for percent in (row.next_alert, row.next_stop)
        if percent is not None and int(row.taken_num) * 100 >= exact_from_minor(row.limit_minor, row.currency) * percent
    }
    return sorted(near, key=lambda each: (near[each] or BEGINNING_OF_TIME, each))


def _check_tenant(tenant_id: str, now: datetime) -> None:
    """Check every budget of a tenant, with the tenant locked.

    A budget that is raised meanwhile waits, or was raised before.
    """
    with tenant_scope(tenant_id):
        lock_tenant_funds(tenant_id)
        tenant = Tenant.objects.get(pk=tenant_id)
        month = billing_periods.current_period(tenant, now=now)
        budgets = Budget.objects.select_related("project__tenant").filter(tenant=tenant).order_by("pk")
        for balance in budget_balances(budgets, tenant=tenant, now=now):
            for measure in BudgetMeasure:
                _record_alerts(balance, measure, month, now)
            for what in StopScope:
                _announce_stop(balance, what, month, now)


def _record_alerts(balance: BudgetBalance, measure: BudgetMeasure, month: BillingPeriod, now: datetime) -> None:
    """Record every share that was newly reached, and e-mail about the highest."""
    budget, minor = balance.budget, measured_amount(balance, measure)
    open_alerts = BudgetAlert.objects.filter(budget=budget, period=month, measure=measure, lifted_at=None)
    known = set(open_alerts.values_list("percent", flat=True))
    fresh = _new_thresholds(budget.terms.alert_thresholds(measure), known, minor, balance.limit)
    amounts = {"minor": minor, "limit_minor": balance.limit, "at": now}
    rows = [
        BudgetAlert(
            tenant_id=budget.tenant_id, budget=budget, period=month, measure=measure, percent=percent, **amounts
        )
        for percent in fresh
    ]
    BudgetAlert.objects.bulk_create(rows)
    if rows and rows[-1].percent >= max(known, default=0):  # otherwise a higher one was announced already
        email_queue.enqueue_email("budget-alert", rows[-1].pk, tenant_id=budget.tenant_id, now=now)


def _new_thresholds(shares: Iterable[int], known: set[int], minor: int, limit: int) -> list[int]:
    return [each for each in shares if each not in known and has_reached(minor, limit, each)]


def _announce_stop(balance: BudgetBalance, what: StopScope, month: BillingPeriod, now: datetime) -> None:
    """Announce a stop and its time, once its share is reached."""
    budget = balance.budget
    percent = budget.terms.stops_at(what)
    if percent is None or not has_reached(balance.spent, balance.limit, percent):
        return
    stop, first = BudgetStop.objects.get_or_create(
        tenant_id=budget.tenant_id,
        budget=budget,
        period=month,
        what=what,
        lifted_at=None,
        defaults={
            "percent": percent,
            "minor": balance.spent,
            "limit_minor": balance.limit,
            "notified_at": now,
            "due_at": now + timedelta(minutes=budget.grace_minutes),
        },
    )
    if first:
        email_queue.enqueue_email("budget-stop", stop.pk, tenant_id=budget.tenant_id, now=now)
