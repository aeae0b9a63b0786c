"""Consequences of a changed budget: alerts are reset, and stops cancelled or postponed."""

from datetime import datetime, timedelta

from billing.domain.budgets import BudgetMeasure, StopScope, has_reached
from billing.models import Budget, BudgetAlert, BudgetStop
from billing.services.funds.budgets.budget_balances import BudgetBalance, budget_balances
from billing.services.notifications import email_queue


def apply_budget_change(budget: Budget, *, now: datetime) -> None:
    """Reset this month's alerts and cancel stops that a changed budget no longer implies.

    Runs in the transaction that changed the budget, with the tenant locked.
    """
    alerts = list(BudgetAlert.objects.filter(budget=budget, lifted_at=None, period__span__contains=now))
    stops = list(BudgetStop.objects.filter(budget=budget, lifted_at=None, period__span__contains=now))
    if not alerts and not stops:
        return
    (balance,) = budget_balances([budget], tenant=budget.project.tenant, now=now)
    over = [
        one.pk for one in alerts if not has_reached(measured_amount(balance, one.measure), balance.limit, one.percent)
    ]
    BudgetAlert.objects.filter(pk__in=over).update(lifted_at=now)
    for stop in stops:
        if not is_stop_due(stop, balance):
            cancel_stop(stop, now=now)
        else:
            _postpone_stop(stop, balance, now)


def cancel_stop(stop: BudgetStop, *, now: datetime) -> None:
    """Cancel a stop and notify its people."""
    BudgetStop.objects.filter(pk=stop.pk).update(lifted_at=now)
    email_queue.enqueue_email("budget-stop-off", stop.pk, tenant_id=stop.tenant_id, now=now)


def _postpone_stop(stop: BudgetStop, balance: BudgetBalance, now: datetime) -> None:
    """Postpone a stop to the end of a longer grace period, with a new e-mail.

    The grace period counts from the first announcement. A shorter one brings no stop forward.
    """
    due_at = stop.notified_at + timedelta(minutes=balance.budget.grace_minutes)
    if stop.done_at is not None or due_at <= max(stop.due_at, now):
        return
    BudgetStop.objects.filter(pk=stop.pk).update(lifted_at=now)
    later = BudgetStop.objects.create(
        tenant_id=stop.tenant_id,
        budget=balance.budget,
        period_id=stop.period_id,
        what=stop.what,
        percent=balance.budget.terms.stops_at(StopScope(stop.what)) or stop.percent,
        minor=balance.spent,
        limit_minor=balance.limit,
        notified_at=stop.notified_at,
        due_at=due_at,
        ended=stop.ended,
    )
    email_queue.enqueue_email("budget-stop", later.pk, tenant_id=stop.tenant_id, now=now)


def measured_amount(balance: BudgetBalance, measure: str) -> int:
    """Return the spent or the forecast amount, in minor units."""
    return balance.forecast if measure == BudgetMeasure.FORECAST else balance.spent


def is_stop_due(stop: BudgetStop, balance: BudgetBalance) -> bool:
    """Return whether a stop is still due under its budget's current terms."""
    percent = balance.budget.terms.stops_at(StopScope(stop.what))
    return percent is not None and has_reached(balance.spent, balance.limit, percent)
