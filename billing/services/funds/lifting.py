"""Whoever raises a budget is told anew of what is reached then, and calls a stop off that is no longer due."""

from datetime import datetime

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
        if not _stands(stop, stands):
            BudgetStop.objects.filter(pk=stop.pk).update(lifted_at=now)
            queue.put("budget-stop-off", stop.pk, tenant_id=budget.tenant_id, now=now)


def amount(stands: Standing, measure: str) -> int:
    """Return what is spent, or forecast, in minor units."""
    return stands.forecast if measure == Measure.FORECAST else stands.spent


def _stands(stop: BudgetStop, stands: Standing) -> bool:
    percent = stands.budget.terms.stops_at(StopOf(stop.what))
    return percent is not None and reached(stands.spent, stands.limit, percent)
