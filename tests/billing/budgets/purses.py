"""Budgets as tests set and read them."""

from billing.domain.money import EXACT_PER_UNIT
from billing.domain.watching import Terms
from billing.models import Budget, BudgetAlert, BudgetMonth, BudgetStop, Hold
from billing.services import metering
from billing.services.funds import budgets, standings, stopping, watching
from billing.services.post import delivering
from broker.models import Lease
from ports import mail
from tenants.models import Project
from tenants.services.walls import as_tenant
from tests.world import NOW, Home, Life


def budget(
    owner: Home,
    cents: int,
    life: Life | None = None,
    project: Project | None = None,
    terms: Terms | None = None,
) -> Budget:
    now = life.now if life else NOW
    with as_tenant(owner.tenant.pk):
        return budgets.set_limit(
            project=project or owner.project, limit_minor=cents, actor=owner.actor, now=now, terms=terms
        )


def stands(budget: Budget, life: Life | None = None) -> tuple[int, int, int]:
    """Return what of this month's budget is spent, held and left, in cents."""
    with as_tenant(budget.tenant_id):
        (row,) = standings.standing(
            [Budget.objects.get(pk=budget.pk)], tenant=budget.tenant, now=life.now if life else NOW
        )
    return row.spent, row.held, row.left


def months_exact(budget: Budget) -> dict[str, tuple[int, int]]:
    """Return by month what is taken and spent, exact."""
    with as_tenant(budget.tenant_id):
        rows = BudgetMonth.objects.filter(budget=budget).select_related("period").order_by("period__span")
        return {row.period.label: (int(row.taken_num), int(row.spent_num)) for row in rows}


def months(budget: Budget) -> dict[str, tuple[int, int]]:
    """Return by month what is taken and spent, in cents; it must be whole ones."""
    found = {label: (taken * 100, spent * 100) for label, (taken, spent) in months_exact(budget).items()}
    assert all(num % EXACT_PER_UNIT == 0 for pair in found.values() for num in pair)
    return {
        label: (taken // EXACT_PER_UNIT, spent // EXACT_PER_UNIT) for label, (taken, spent) in found.items()
    }


def hold_of(lease: Lease) -> Hold | None:
    with as_tenant(lease.tenant_id):
        return Hold.objects.filter(lease_id=lease.pk).first()


def meter(life: Life, times: int = 1) -> None:
    """Let what happens every half minute happen."""
    for _ in range(times):
        metering.meter(now=life.now)


def watched(life: Life) -> int:
    """Let what happens each minute happen; return how many leases were ended."""
    watching.watch(now=life.now)
    return stopping.stop_due(now=life.now)


def alerts(purse: Budget) -> list[tuple[str, int, bool]]:
    """Return what was told of a budget: what was measured, the share, and whether it holds."""
    with as_tenant(purse.tenant_id):
        rows = BudgetAlert.objects.filter(budget=purse).order_by("at", "measure", "percent")
        return [(row.measure, row.percent, row.lifted_at is None) for row in rows]


def stop_of(purse: Budget, what: str = "all") -> BudgetStop:
    """Return the newest stop of a budget."""
    with as_tenant(purse.tenant_id):
        return BudgetStop.objects.filter(budget=purse, what=what).order_by("-told_at", "-pk")[0]


def post(life: Life) -> list[tuple[str, str, str]]:
    """Let every letter that waits be sent; return to whom, with which subject and text."""
    sent: list[tuple[str, str, str]] = []
    with mail.carried_by(lambda *letter: sent.append(letter)):
        for _, letter_id, tenant_id in delivering.due(now=life.now):
            delivering.deliver(letter_id, tenant_id, now=life.now)
    return sent
