"""Whoever raises a budget is told anew of what is reached then, and calls a stop off that is no longer due."""

from datetime import datetime, timedelta

from billing.domain.watching import Measure, StopOf, reached
from billing.models import Budget, BudgetAlert, BudgetStop
from billing.services.funds.standings import Standing, standing
from billing.services.post import queue


def lift(budget: Budget, *, now: datetime) -> None:
    """Lift of this month what a changed budget no longer says. Inside the transaction that changed it, alone."""
    told = list(BudgetAlert.objects.filter(budget=budget, lifted_at=None, period__span__contains=now))
    stops = list(BudgetStop.objects.filter(budget=budget, lifted_at=None, period__span__contains=now))
    if not told and not stops:
        return
    (stands,) = standing([budget], tenant=budget.project.tenant, now=now)
    over = [one.pk for one in told if not reached(amount(stands, one.measure), stands.limit, one.percent)]
    BudgetAlert.objects.filter(pk__in=over).update(lifted_at=now)
    for stop in stops:
        if not holds(stop, stands):
            call_off(stop, now=now)
        else:
            _put_off(stop, stands, now)


def call_off(stop: BudgetStop, *, now: datetime) -> None:
    """Say that a stop is not made any more."""
    BudgetStop.objects.filter(pk=stop.pk).update(lifted_at=now)
    queue.put("budget-stop-off", stop.pk, tenant_id=stop.tenant_id, now=now)


def _put_off(stop: BudgetStop, stands: Standing, now: datetime) -> None:
    """Give a stop the moment that a longer grace comes to, with a letter of its own. A shorter one brings none forward.

    The grace counts from when people were told first.
    """
    due_at = stop.told_at + timedelta(minutes=stands.budget.grace_minutes)
    if stop.done_at is not None or due_at <= max(stop.due_at, now):
        return
    BudgetStop.objects.filter(pk=stop.pk).update(lifted_at=now)
    later = BudgetStop.objects.create(
        tenant_id=stop.tenant_id,
        budget=stands.budget,
        period_id=stop.period_id,
        what=stop.what,
        percent=stands.budget.terms.stops_at(StopOf(stop.what)) or stop.percent,
        minor=stands.spent,
        limit_minor=stands.limit,
        told_at=stop.told_at,
        due_at=due_at,
        ended=stop.ended,
    )
    queue.put("budget-stop", later.pk, tenant_id=stop.tenant_id, now=now)


def amount(stands: Standing, measure: str) -> int:
    """Return what is spent, or forecast, in minor units."""
    return stands.forecast if measure == Measure.FORECAST else stands.spent


def holds(stop: BudgetStop, stands: Standing) -> bool:
    """Tell whether a stop is still due, as its budget stands now."""
    percent = stands.budget.terms.stops_at(StopOf(stop.what))
    return percent is not None and reached(stands.spent, stands.limit, percent)
