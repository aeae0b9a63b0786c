"""Looking after budgets: of every share that is reached people are told once, and of stops before they are made."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from django.db import connection

from billing.domain.holding import exact_of
from billing.domain.watching import Measure, StopOf, reached
from billing.models import BillingPeriod, Budget, BudgetAlert, BudgetStop
from billing.services import periods
from billing.services.funds.budgets import alone
from billing.services.funds.lifting import amount
from billing.services.funds.rota import Over, in_turn
from billing.services.funds.standings import Standing, standing
from billing.services.post import queue
from tenants.models import Tenant
from tenants.services.walls import as_sweep, as_tenant

NEVER = datetime.min.replace(tzinfo=UTC)
# What was taken of each month that goes on, and of which shares nobody was told. Nothing can be spent, or forecast,
# that was not taken first: a budget whose next share is not even taken needs no closer look.
NEAR = """
SELECT b.tenant_id, b.looked_at, b.limit_minor, b.currency, m.taken_num,
       (SELECT min(w.percent) FROM
          (SELECT 'spent' AS measure, unnest(b.thresholds) AS percent
            UNION ALL SELECT 'forecast', unnest(b.forecast_thresholds)) w
         WHERE NOT EXISTS (SELECT FROM billing_budgetalert a
                            WHERE a.budget_id = b.id AND a.period_id = m.period_id AND a.lifted_at IS NULL
                              AND a.measure = w.measure AND a.percent = w.percent)),
       (SELECT min(w.percent) FROM (VALUES ('idle', b.stop_idle_at), ('all', b.stop_all_at)) w (what, percent)
         WHERE w.percent IS NOT NULL
           AND NOT EXISTS (SELECT FROM billing_budgetstop s
                            WHERE s.budget_id = b.id AND s.period_id = m.period_id AND s.lifted_at IS NULL
                              AND s.what = w.what))
  FROM billing_budget b
  JOIN billing_budgetmonth m ON m.budget_id = b.id AND m.taken_num > 0
  JOIN billing_billingperiod p ON p.id = m.period_id AND p.span @> %s::timestamptz
"""


def watch(*, now: datetime) -> int:
    """Tell of what is reached, once, and announce what is to be stopped; return how many tenants were looked at.

    Who was not looked at for longest comes first, so that everybody has a turn, however many there are.
    """
    with as_sweep():
        found = [(tenant_id, tenant_id) for tenant_id in _near(now)]

    def look(_: str, tenant_id: str, over: Over) -> int:
        _note_turn(tenant_id, now)
        _look(tenant_id, now)
        return 1

    return sum(in_turn(found, look, trouble="budgets could not be looked after"))


def _note_turn(tenant_id: str, now: datetime) -> None:
    """Note a turn before it is taken: what kills whoever looks must not come first for ever. It waits for nobody."""
    with as_tenant(tenant_id):
        free = Budget.objects.select_for_update(skip_locked=True).filter(tenant=tenant_id).order_by("pk")
        Budget.objects.filter(pk__in=[each.pk for each in free]).update(looked_at=now)


def _near(now: datetime) -> list[str]:
    """Name the tenants of which a budget may have reached what nobody was told, in their turn; one query."""
    with connection.cursor() as cursor:
        cursor.execute(NEAR, [now])
        rows = cursor.fetchall()
    near = {
        tenant_id: looked_at
        for tenant_id, looked_at, limit, currency, taken, *percents in rows
        for percent in percents
        if percent is not None and int(taken) * 100 >= exact_of(limit, currency) * percent
    }
    return sorted(near, key=lambda each: (near[each] or NEVER, each))


def _look(tenant_id: str, now: datetime) -> None:
    """Look at every budget of a tenant, alone: whoever raises one meanwhile waits, or has raised it."""
    with as_tenant(tenant_id):
        alone(tenant_id)
        tenant = Tenant.objects.get(pk=tenant_id)
        month = periods.current(tenant, now=now)
        budgets = Budget.objects.select_related("project__tenant").filter(tenant=tenant).order_by("pk")
        for stands in standing(budgets, tenant=tenant, now=now):
            for measure in Measure:
                _tell(stands, measure, month, now)
            for what in StopOf:
                _announce(stands, what, month, now)


def _tell(stands: Standing, measure: Measure, month: BillingPeriod, now: datetime) -> None:
    """Note every share that is reached and was not told of, and write of the highest."""
    budget, minor = stands.budget, amount(stands, measure)
    told = BudgetAlert.objects.filter(budget=budget, period=month, measure=measure, lifted_at=None)
    known = set(told.values_list("percent", flat=True))
    fresh = _fresh(budget.terms.told_of(measure), known, minor, stands.limit)
    said = {"minor": minor, "limit_minor": stands.limit, "at": now}
    rows = [
        BudgetAlert(
            tenant_id=budget.tenant_id, budget=budget, period=month, measure=measure, percent=percent, **said
        )
        for percent in fresh
    ]
    BudgetAlert.objects.bulk_create(rows)
    if rows and rows[-1].percent >= max(known, default=0):  # of a higher one it was told already
        queue.put("budget-alert", rows[-1].pk, tenant_id=budget.tenant_id, now=now)


def _fresh(shares: Iterable[int], known: set[int], minor: int, limit: int) -> list[int]:
    return [each for each in shares if each not in known and reached(minor, limit, each)]


def _announce(stands: Standing, what: StopOf, month: BillingPeriod, now: datetime) -> None:
    """Say that something will be stopped, and when, where its share is reached and nobody said so yet."""
    budget = stands.budget
    percent = budget.terms.stops_at(what)
    if percent is None or not reached(stands.spent, stands.limit, percent):
        return
    stop, first = BudgetStop.objects.get_or_create(
        tenant_id=budget.tenant_id,
        budget=budget,
        period=month,
        what=what,
        lifted_at=None,
        defaults={
            "percent": percent,
            "minor": stands.spent,
            "limit_minor": stands.limit,
            "told_at": now,
            "due_at": now + timedelta(minutes=budget.grace_minutes),
        },
    )
    if first:
        queue.put("budget-stop", stop.pk, tenant_id=budget.tenant_id, now=now)
