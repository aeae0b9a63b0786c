"""Setup and totals of budgets."""

from billing.domain.budgets import BudgetTerms
from billing.domain.money import EXACT_PER_UNIT
from billing.models import Budget, BudgetAlert, BudgetMonth, BudgetStop, Hold
from billing.services.emails import email_delivery
from billing.services.funds.budgets import budget_alerts, budget_balances, budget_settings, budget_stops
from billing.services.invoicing import metering
from broker.models import Lease
from ports import mail
from tenants.models import Project
from tenants.services.rls import tenant_scope
from tests.simulation import NOW, Simulation, TenantContext


def create_budget(
    owner: TenantContext,
    cents: int,
    sim: Simulation | None = None,
    project: Project | None = None,
    terms: BudgetTerms | None = None,
) -> Budget:
    now = sim.now if sim else NOW
    with tenant_scope(owner.tenant.pk):
        return budget_settings.set_budget(
            project=project or owner.project, limit_minor=cents, actor=owner.actor, now=now, terms=terms
        )


def budget_totals(budget: Budget, sim: Simulation | None = None) -> tuple[int, int, int]:
    """Return the spent, held and remaining cents of this month's budget."""
    with tenant_scope(budget.tenant_id):
        (row,) = budget_balances.budget_balances(
            [Budget.objects.get(pk=budget.pk)], tenant=budget.tenant, now=sim.now if sim else NOW
        )
    return row.spent, row.held, row.left


def exact_month_totals(budget: Budget) -> dict[str, tuple[int, int]]:
    """Return the taken and spent exact amounts by month."""
    with tenant_scope(budget.tenant_id):
        rows = BudgetMonth.objects.filter(budget=budget).select_related("period").order_by("period__span")
        return {row.period.label: (int(row.taken_num), int(row.spent_num)) for row in rows}


def month_totals(budget: Budget) -> dict[str, tuple[int, int]]:
    """Return the taken and spent cents by month; amounts must be whole cents."""
    found = {label: (taken * 100, spent * 100) for label, (taken, spent) in exact_month_totals(budget).items()}
    assert all(num % EXACT_PER_UNIT == 0 for pair in found.values() for num in pair)
    return {label: (taken // EXACT_PER_UNIT, spent // EXACT_PER_UNIT) for label, (taken, spent) in found.items()}


def find_hold(lease: Lease) -> Hold | None:
    with tenant_scope(lease.tenant_id):
        return Hold.objects.filter(lease_id=lease.pk).first()


def run_metering(sim: Simulation, times: int = 1) -> None:
    """Run the half-minute metering tasks."""
    for _ in range(times):
        metering.run_metering(now=sim.now)


def run_budget_watch(sim: Simulation) -> int:
    """Run the budget tasks of each minute; return how many leases were ended."""
    budget_alerts.check_budgets(now=sim.now)
    return budget_stops.execute_due_stops(now=sim.now)


def alerts_of(budget: Budget) -> list[tuple[str, int, bool]]:
    """Return each alert of a budget: measure, threshold and whether it is active."""
    with tenant_scope(budget.tenant_id):
        rows = BudgetAlert.objects.filter(budget=budget).order_by("at", "measure", "percent")
        return [(row.measure, row.percent, row.lifted_at is None) for row in rows]


def latest_stop(budget: Budget, what: str = "all") -> BudgetStop:
    """Return the newest stop of a budget."""
    with tenant_scope(budget.tenant_id):
        return BudgetStop.objects.filter(budget=budget, what=what).order_by("-notified_at", "-pk")[0]


def send_emails(sim: Simulation) -> list[tuple[str, str, str]]:
    """Send all queued e-mails; return recipient, subject and text of each."""
    sent: list[tuple[str, str, str]] = []
    with mail.captured_mail(lambda *letter: sent.append(letter)):
        for _, letter_id, tenant_id in email_delivery.due_emails(now=sim.now):
            email_delivery.deliver_email(letter_id, tenant_id, now=sim.now)
    return sent
