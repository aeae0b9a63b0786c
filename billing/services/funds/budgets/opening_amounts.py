"""Opening amounts of a new budget: the month's cost so far, and what may follow."""

from datetime import datetime

from django.db.models import Q, Sum

from billing.models import Budget, BudgetMonth, Hold, RatedCharge
from billing.services.funds.costs.max_costs import NO_USAGE, LeaseUsage, MaxCost, lease_usages
from billing.services.funds.holds.budget_holds import budget_hold_for, ensure_budget_months, write_budget_holds
from billing.services.periods import billing_periods
from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease
from tenants.models import Project


def open_budget_month(budget: Budget, *, now: datetime) -> None:
    """Record the month's cost below a new budget, and the open holds.

    Nobody takes money meanwhile. Only the new budget is written: the parts that other budgets hold of
    the same leases are updated elsewhere.
    """
    tenant = budget.project.tenant
    month = billing_periods.current_period(tenant, now=now)
    below = Project.objects.filter(path__contains=[budget.project_id]).values("pk")
    lately = Q(ended_at=None) | Q(ended_at__gte=month.span.lower)
    rows = Lease.objects.filter(lately, project__in=below).select_related("project", "offering").order_by("pk")
    known = {lease.pk: lease for lease in rows}
    used = lease_usages(known)
    living = {key: lease for key, lease in known.items() if lease.ended_at is None or used.get(key, NO_USAGE).uncharged}
    charges = RatedCharge.objects.filter(project_id__in=below, period_id=month.pk)
    base = charges.exclude(lease_id__in=list(living)).aggregate(num=Sum("exact_num", default=0))
    sums = dict.fromkeys(("base_num", "taken_num", "spent_num"), base["num"])
    BudgetMonth.objects.create(tenant_id=tenant.pk, budget=budget, period=month, **sums)
    max_cost = MaxCost(tenant, living.values())
    wanted = {key: _wanted_hold(max_cost, lease, used.get(key, NO_USAGE), now) for key, lease in living.items()}
    opened = {"tenant": tenant, "currency": tenant.currency, "opened_at": now, "checked_at": now}
    Hold.objects.bulk_create([Hold(lease_id=key, **opened) for key in living], ignore_conflicts=True)
    Hold.objects.filter(lease__in=list(living)).update(settled_at=None)
    ensure_budget_months([budget.project_id], {each for parts in wanted.values() for each in parts})
    months = dict(BudgetMonth.objects.filter(budget=budget).values_list("period_id", "pk"))
    holds = Hold.objects.filter(lease__in=list(living)).order_by("pk").values_list("pk", "lease_id")
    write_budget_holds(
        tenant.pk,
        [
            budget_hold_for(hold, months[key], key, wanted[lease_id], used.get(lease_id, NO_USAGE))
            for hold, lease_id in holds
            for key in wanted[lease_id]
            if key in months
        ],
    )


def _wanted_hold(max_cost: MaxCost, lease: Lease, use: LeaseUsage, now: datetime) -> dict[int, int]:
    if lease.ended_at or lease.state == LeaseState.STOPPED:
        return max_cost.over(lease, use, now=now)
    return max_cost.needed(lease, use, now=now)
