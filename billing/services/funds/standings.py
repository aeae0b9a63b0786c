"""How budgets stand this month: what is spent, held and left of them."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import F, OuterRef, Subquery, Sum

from billing.domain.money import exponent_of, to_minor, to_minor_up
from billing.domain.periods import month_of
from billing.models import Budget, BudgetMonth, HoldPart
from billing.services import spend
from broker.domain.states import LeaseState
from tenants.models import Project, Tenant

# What waits, or is stopped, spends nothing unless somebody or something lets it begin.
WAITS = (LeaseState.REQUESTED, LeaseState.QUEUED, LeaseState.PROVISIONING, LeaseState.STOPPED)


@dataclass(frozen=True, slots=True)
class Standing:
    """A budget in a month: minor units, what is held and forecast rounded up and what is left rounded down.

    The forecast is what is spent, and what runs now until its own end or the month's, at the prices known. What waits
    may never begin, and is no part of it.
    """

    budget: Budget
    spent: int
    held: int
    left: int
    forecast: int

    @property
    def limit(self) -> int:
        return self.budget.limit_minor


@dataclass(frozen=True, slots=True)
class Room:
    """What may still be taken this month of the budget that has least left, in minor units."""

    limit: int
    left: int
    currency: str


def standing(budgets: Iterable[Budget], *, tenant: Tenant, now: datetime) -> list[Standing]:
    """Return how budgets of a tenant stand in its month; five queries.

    What is spent counts what runs to this second, as on every page; the rest of what is taken is held.
    """
    wanted = list(budgets)
    if not wanted:
        return []
    month = month_of(tenant.time_zone, now)
    rows = BudgetMonth.objects.filter(budget__in=wanted, period__span__contains=now)
    taken = {row.budget_id: int(row.taken_num) for row in rows}
    paths = dict(Project.objects.filter(tenant=tenant).values_list("pk", "path"))
    spent: dict[str, int] = defaultdict(int)
    for line in spend.lines([month.start, month.end], until=now):
        for node in paths[line.project]:
            spent[node] += to_minor(line.exact_num, exponent_of(tenant.currency))
    waits = _waiting([row.pk for row in rows])
    return [
        _standing(each, spent[each.project_id], taken.get(each.pk, 0), waits.get(each.pk, 0))
        for each in wanted
    ]


def room(project: Project, *, now: datetime) -> Room | None:
    """Return what is left of the tightest budget from a project up to the root; None where there is none. One query."""
    month = BudgetMonth.objects.filter(budget=OuterRef("pk"), period__span__contains=now)
    rows = Budget.objects.filter(project__in=project.path).annotate(
        taken=Subquery(month.values("taken_num")[:1])
    )
    rooms = [
        Room(
            ceiling,
            max(ceiling - to_minor_up(int(budget.taken or 0), exponent_of(budget.currency)), 0),
            budget.currency,
        )
        for budget in rows
        if (ceiling := budget.ceiling_minor) is not None  # one that only tells stops nobody
    ]
    return min(rooms, key=lambda each: each.left, default=None)


def _waiting(months: list[int]) -> dict[str, int]:
    """Return by budget what leases that do not run hold of its month beyond what is charged, exact; one query."""
    parts = HoldPart.objects.filter(month__in=months, hold__lease__state__in=WAITS, num__gt=F("spent_num"))
    sums = parts.values_list("month__budget").annotate(more=Sum(F("num") - F("spent_num"))).order_by()
    return {budget: int(more) for budget, more in sums}


def _standing(budget: Budget, spent: int, taken: int, waits: int) -> Standing:
    places = exponent_of(budget.currency)
    taken_minor = to_minor_up(taken, places)
    ceiling = budget.limit_minor if budget.ceiling_minor is None else budget.ceiling_minor
    left = max(ceiling - max(taken_minor, spent), 0)
    forecast = max(to_minor_up(taken - waits, places), spent)
    return Standing(budget, spent, max(taken_minor - spent, 0), left, forecast)
