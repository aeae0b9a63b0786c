"""No lease queues before the money that it may come to is set aside in every budget from its project up to the root."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from decimal import Decimal

from django.db import transaction

from billing.domain import holding
from billing.domain.money import Money, exponent_of, to_minor, to_minor_up
from billing.models import BillingPeriod, Budget, BudgetMonth, Hold, HoldPart
from billing.services.funds.needs import Charged, charged_of, needed
from broker.models import Lease
from ports import database
from tenants.models import Project
from tenants.services.refusals import Fix, Refused

IS_LIMITED = "SELECT EXISTS (SELECT FROM billing_budget WHERE project_id = ANY(%s::text[]))"


class BudgetExceeded(Refused):
    """A budget on the path has no room for all that the lease may come to."""

    code, status, title = "budget-hold-failed", 402, "The budget does not allow this"


def gate(lease: Lease, *, now: datetime) -> Callable[[], None]:
    """Set aside what the lease may come to in every budget on its path, or raise BudgetExceeded."""
    cursor = database.prepared()
    cursor.execute(IS_LIMITED, [lease.project.path])

    def judge() -> None:
        with cursor:
            (limited,) = cursor.fetchone()
        if limited:
            charged = charged_of(lease.pk)
            set_aside(lease, needed(lease, charged, now=now), charged, now=now)

    return judge


def refusal(lease: Lease, *, now: datetime) -> BudgetExceeded | None:
    """Return what the gate would say to a lease that is not asked for yet; nothing is taken."""
    try:
        with transaction.atomic():
            gate(lease, now=now)()
            transaction.set_rollback(True)
    except BudgetExceeded as said:
        return said
    return None


def set_aside(
    lease: Lease, wanted: Mapping[int, int], charged: Charged, *, now: datetime, force: bool = False
) -> None:
    """Let a lease have set aside just so much by month in every budget on its path, or raise BudgetExceeded.

    `force` takes it even where there is no room: it is charged already, or will be.
    """
    tenant = lease.project.tenant
    hold, _ = Hold.objects.get_or_create(
        lease_id=lease.pk,
        defaults={"tenant": tenant, "currency": tenant.currency, "opened_at": now, "looked_at": now},
    )
    months = _months(lease.project, wanted, now)
    held = {part.month_id: part for part in HoldPart.objects.filter(hold=hold)}
    for month in months:
        more = wanted[month.period_id] - (held[month.pk].num if month.pk in held else 0)
        if more > 0 and not force and month.taken_num + more > limit_of(month.budget):
            raise _refusal(lease, month, int(more))
    parts = [_part(hold, month, wanted, charged) for month in months]
    HoldPart.objects.bulk_create(
        parts,
        update_conflicts=True,
        unique_fields=["tenant", "hold", "month"],
        update_fields=["num", "spent_num"],
    )
    gone = [part for key, part in held.items() if key not in {month.pk for month in months} and part.num]
    for part in gone:  # a month that it will not reach after all
        HoldPart.objects.filter(pk=part.pk).update(num=0, spent_num=0)
    Hold.objects.filter(pk=hold.pk).update(looked_at=now, settled_at=None)


def _part(hold: Hold, month: BudgetMonth, wanted: Mapping[int, int], charged: Charged) -> HoldPart:
    return HoldPart(
        tenant_id=hold.tenant_id,
        hold=hold,
        month=month,
        num=Decimal(wanted[month.period_id]),
        spent_num=Decimal(min(charged.by_month.get(month.period_id, 0), wanted[month.period_id])),
    )


def _months(project: Project, wanted: Iterable[int], now: datetime) -> list[BudgetMonth]:
    """Return the months of every budget on the path, locked from the root on; none that ended before its budget."""
    budgets = list(Budget.objects.filter(project_id__in=project.path))
    open_ = list(BillingPeriod.objects.filter(pk__in=list(wanted)).values_list("pk", "span"))
    BudgetMonth.objects.bulk_create(
        [
            BudgetMonth(tenant_id=budget.tenant_id, budget=budget, period_id=key)
            for budget in budgets
            for key, span in open_
            if span.upper > budget.made_at
        ],
        ignore_conflicts=True,
    )
    found = BudgetMonth.objects.filter(budget__in=budgets, period_id__in=list(wanted))
    locked = found.select_related("budget__project", "period").select_for_update(of=("self",), no_key=True)
    by_depth = locked.order_by("budget__project__path__len", "period__span")
    return list(by_depth)


def limit_of(budget: Budget) -> int:
    """Return a budget's limit as an exact amount."""
    return holding.exact_of(budget.limit_minor, budget.currency)


def _refusal(lease: Lease, month: BudgetMonth, more: int) -> BudgetExceeded:
    budget, currency = month.budget, month.budget.currency
    left = Money(to_minor(max(limit_of(budget) - int(month.taken_num), 0), exponent_of(currency)), currency)
    asked = Money(to_minor_up(more, exponent_of(currency)), currency)
    limit = Money(budget.limit_minor, currency)
    where = "this project" if budget.project_id == lease.project_id else "a project above this one"
    return BudgetExceeded(
        f"The budget of {where} for {month.period.label} is {limit}; {left} of it is left,"
        f" and this could come to {asked} of that month.",
        fix=Fix(
            "Ask for a shorter time or a smaller slice, release a lease, or ask an owner to raise the budget.",
            "GET",
            "/api/v1/budgets",
        ),
        budget=budget.pk,
    )
