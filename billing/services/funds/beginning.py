"""A budget that is new begins with what its month has cost already, and what may still be charged there."""

from datetime import datetime

from django.db.models import Q, Sum

from billing.models import Budget, BudgetMonth, Hold, RatedCharge
from billing.services import periods
from billing.services.funds.holds import months_of, part_of, write
from billing.services.funds.needs import NO_USE, Outlook, Use, uses
from broker.domain.states import LeaseState
from broker.models import Lease
from tenants.models import Project


def count(budget: Budget, *, now: datetime) -> None:
    """Count what this month has cost below a new budget, and what may still be charged there; nobody moves meanwhile.

    Only what is new is written: what other budgets hold of the same leases is theirs to follow.
    """
    tenant = budget.project.tenant
    month = periods.current(tenant, now=now)
    below = Project.objects.filter(path__contains=[budget.project_id]).values("pk")
    lately = Q(ended_at=None) | Q(ended_at__gte=month.span.lower)
    rows = (
        Lease.objects.filter(lately, project__in=below).select_related("project", "offering").order_by("pk")
    )
    known = {lease.pk: lease for lease in rows}
    used = uses(known)
    living = {
        key: lease
        for key, lease in known.items()
        if lease.ended_at is None or used.get(key, NO_USE).uncharged
    }
    charges = RatedCharge.objects.filter(project_id__in=below, period_id=month.pk)
    base = charges.exclude(lease_id__in=list(living)).aggregate(num=Sum("exact_num", default=0))
    sums = dict.fromkeys(("base_num", "taken_num", "spent_num"), base["num"])
    BudgetMonth.objects.create(tenant_id=tenant.pk, budget=budget, period=month, **sums)
    outlook = Outlook(tenant, living.values())
    wanted = {key: _wanted(outlook, lease, used.get(key, NO_USE), now) for key, lease in living.items()}
    opened = {"tenant": tenant, "currency": tenant.currency, "opened_at": now, "looked_at": now}
    Hold.objects.bulk_create([Hold(lease_id=key, **opened) for key in living], ignore_conflicts=True)
    Hold.objects.filter(lease__in=list(living)).update(settled_at=None)
    months_of([budget.project_id], {each for parts in wanted.values() for each in parts})
    months = dict(BudgetMonth.objects.filter(budget=budget).values_list("period_id", "pk"))
    holds = Hold.objects.filter(lease__in=list(living)).order_by("pk").values_list("pk", "lease_id")
    write(
        tenant.pk,
        [
            part_of(hold, months[key], key, wanted[lease_id], used.get(lease_id, NO_USE))
            for hold, lease_id in holds
            for key in wanted[lease_id]
            if key in months
        ],
    )


def _wanted(outlook: Outlook, lease: Lease, use: Use, now: datetime) -> dict[int, int]:
    if lease.ended_at or lease.state == LeaseState.STOPPED:
        return outlook.over(lease, use, now=now)
    return outlook.needed(lease, use, now=now)
