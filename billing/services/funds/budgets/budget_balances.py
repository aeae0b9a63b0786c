"""Budget balances of the current month: spent, held and left."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from billing.domain.money import exponent_of, to_minor_up
from billing.domain.periods import month_of
from billing.models import Budget, BudgetMonth
from billing.services.rating import spend
from tenants.models import Project, Tenant


@dataclass(frozen=True, slots=True)
class BudgetBalance:
    """A budget in a month, in minor units.

    What is held is rounded up, what is left is rounded down. The forecast is that of every page:
    `spend.spend_by_month_end`. Waiting leases may never begin, and are not in it.
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
    """Return the balances of a tenant's budgets in the current month; four queries.

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
    spent = spend.spend_by_project(month, paths, tenant.currency, until=now)
    ahead = spend.spend_by_project(month, paths, tenant.currency, until=month.end)
    return [_balance_of(each, spent[each.project_id], taken.get(each.pk, 0), ahead[each.project_id]) for each in wanted]


def tightest_budget(project: Project, *, now: datetime) -> BudgetRoom | None:
    """Return what the tightest budget on the path has left; None without one."""
    on_path = [each for each in Budget.objects.filter(project__in=project.path) if each.ceiling_minor is not None]
    rooms = [
        BudgetRoom(each.budget.ceiling_minor or 0, each.left, each.budget.currency)
        for each in budget_balances(on_path, tenant=project.tenant, now=now)
    ]
    return min(rooms, key=lambda each: each.left, default=None)


def _balance_of(budget: Budget, spent: int, taken: int, forecast: int) -> BudgetBalance:
    taken_minor = to_minor_up(taken, exponent_of(budget.currency))
    ceiling = budget.limit_minor if budget.ceiling_minor is None else budget.ceiling_minor
    left = max(ceiling - max(taken_minor, spent), 0)
    return BudgetBalance(budget, spent, max(taken_minor - spent, 0), left, forecast)
