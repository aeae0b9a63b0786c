"""Budget balances of the current month: spent, held and left."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import F, OuterRef, Subquery, Sum

from billing.domain.money import exponent_of, to_minor, to_minor_up
from billing.domain.periods import month_of
from billing.models import Budget, BudgetMonth, HoldPart
from billing.services.rating import spend
from broker.domain.lifecycle.states import LeaseState
from tenants.models import Project, Tenant

# Waiting and stopped leases cost nothing until they are started.
WAITING_STATES = (LeaseState.REQUESTED, LeaseState.QUEUED, LeaseState.PROVISIONING, LeaseState.STOPPED)


@dataclass(frozen=True, slots=True)
class BudgetBalance:
    """A budget in a month, in minor units.

    What is held and forecast is rounded up, what is left is rounded down. The forecast is what is
    spent, plus what running leases cost until their own end or the month's, at known prices. Waiting
    leases may never begin, and are not in it.
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
class BudgetRoom:
    """What is left this month of the tightest budget, in minor units."""

    limit: int
    left: int
    currency: str


def budget_balances(budgets: Iterable[Budget], *, tenant: Tenant, now: datetime) -> list[BudgetBalance]:
    """Return the balances of a tenant's budgets in the current month; five queries.

    What is spent includes running leases to this second, as on every page; the rest of the reserved
    amount is held.
    """
    wanted = list(budgets)
    if not wanted:
        return []
    month = month_of(tenant.time_zone, now)
    rows = BudgetMonth.objects.filter(budget__in=wanted, period__span__contains=now)
    taken = {row.budget_id: int(row.taken_num) for row in rows}
    paths = dict(Project.objects.filter(tenant=tenant).values_list("pk", "path"))
    spent: dict[str, int] = defaultdict(int)
    for line in spend.spend_lines([month.start, month.end], until=now):
        for node in paths[line.project]:
            spent[node] += to_minor(line.exact_num, exponent_of(tenant.currency))
    waits = _held_by_waiting([row.pk for row in rows])
    return [_balance_of(each, spent[each.project_id], taken.get(each.pk, 0), waits.get(each.pk, 0)) for each in wanted]


def tightest_budget(project: Project, *, now: datetime) -> BudgetRoom | None:
    """Return what the tightest budget on the path has left; None without one. One query."""
    month = BudgetMonth.objects.filter(budget=OuterRef("pk"), period__span__contains=now)
    rows = Budget.objects.filter(project__in=project.path).annotate(taken=Subquery(month.values("taken_num")[:1]))
    rooms = [
        BudgetRoom(
            ceiling,
            max(ceiling - to_minor_up(int(budget.taken or 0), exponent_of(budget.currency)), 0),
            budget.currency,
        )
        for budget in rows
        if (ceiling := budget.ceiling_minor) is not None  # a budget that only warns has no ceiling
    ]
    return min(rooms, key=lambda each: each.left, default=None)


def _held_by_waiting(months: list[int]) -> dict[str, int]:
    """Return by budget what leases that do not run hold beyond charges; one query.

    Exact amounts.
    """
    parts = HoldPart.objects.filter(month__in=months, hold__lease__state__in=WAITING_STATES, num__gt=F("spent_num"))
    sums = parts.values_list("month__budget").annotate(more=Sum(F("num") - F("spent_num"))).order_by()
    return {budget: int(more) for budget, more in sums}


def _balance_of(budget: Budget, spent: int, taken: int, waits: int) -> BudgetBalance:
    places = exponent_of(budget.currency)
    taken_minor = to_minor_up(taken, places)
    ceiling = budget.limit_minor if budget.ceiling_minor is None else budget.ceiling_minor
    left = max(ceiling - max(taken_minor, spent), 0)
    forecast = max(to_minor_up(taken - waits, places), spent)
    return BudgetBalance(budget, spent, max(taken_minor - spent, 0), left, forecast)
