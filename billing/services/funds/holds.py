"""No lease queues before the money that it may come to is set aside in every budget from its project up to the root."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal

from django.db import transaction
from django.db.models import Q

from billing.domain import holding
from billing.domain.money import Money, exponent_of, to_minor, to_minor_up
from billing.models import (
    BillingPeriod,
    Budget,
    BudgetMonth,
    Hold,
    HoldPart,
    PaymentTerms,
    TenantStanding,
)
from billing.services.funds import capping
from billing.services.funds.capping import CapReached
from billing.services.funds.needs import NO_USE, Outlook, Use, uses
from billing.services.wallets import covering
from billing.services.wallets.covering import PaymentRequired
from broker.models import Lease
from ports import database
from tenants.models import Project
from tenants.services.quotas import hold_off_new
from tenants.services.refusals import Fix, Refused

# One question on the request path: whether a budget lies on it, until when one of them lets things run that ends all,
# whether a token with a cap asks or has asked, and how the tenant pays and stands.
ASK = """
SELECT EXISTS (SELECT FROM billing_budget WHERE project_id = ANY(%s::text[])),
       (SELECT min(s.due_at)
          FROM billing_budget b JOIN billing_budgetstop s ON s.budget_id = b.id
          JOIN billing_billingperiod p ON p.id = s.period_id
         WHERE b.project_id = ANY(%s::text[]) AND s.what = 'all' AND s.lifted_at IS NULL
           AND p.span @> %s::timestamptz),
       EXISTS (SELECT FROM billing_tokencap WHERE token_id = %s),
       EXISTS (SELECT FROM billing_tokenlease WHERE lease_id = %s),
       t.payment, t.standing, t.why
  FROM (SELECT) one LEFT JOIN billing_tenantterms t ON t.tenant_id = %s
"""


class BudgetExceeded(Refused):
    """A budget on the path has no room for all that the lease may come to."""

    code, status, title = "budget-hold-failed", 402, "The budget does not allow this"


class BudgetStopped(Refused):
    """A budget on the path ends all that runs below it, or has: nothing begins or grows there."""

    code, status, title = "budget-stopped", 402, "A budget stops everything here"

    def __init__(self, at: datetime, now: datetime) -> None:
        when = (
            f"ends all that runs here at {at:%Y-%m-%d %H:%M} UTC"
            if at > now
            else "has ended all that ran here"
        )
        super().__init__(
            f"A budget of this project, or of one above it, {when}; nothing new begins this month.",
            fix=Fix("Ask an owner to raise that budget.", "GET", "/api/v1/budget-stops"),
        )


class Overdue(Refused):
    """The tenant is suspended for what it owes: what runs goes on, nothing new begins."""

    code, status, title = "payment-overdue", 402, "Nothing new can begin before what is overdue is paid"

    def __init__(self, why: str) -> None:
        told = f" {why.rstrip('.')}." if why else ""
        super().__init__(
            f"Your tenant is suspended for what it owes.{told}",
            fix=Fix("Pay the invoices that are due, or ask the operator.", "GET", "/api/v1/invoices"),
        )


def gate(lease: Lease, *, now: datetime) -> Callable[[], None]:
    """Set aside what the lease may come to in every budget on its path, and in its tenant's wallet if it has to.

    And of the cap of the token that asks. Raises BudgetExceeded, BudgetStopped, CapReached, PaymentRequired, or
    Overdue for a tenant that may begin nothing new.
    """
    cursor = database.prepared()
    path = lease.project.path
    cursor.execute(ASK, [path, path, now, lease.asked_with, lease.pk, lease.tenant_id])

    def judge() -> None:
        with cursor:
            limited, stops_at, capped, counted, payment, standing, why = cursor.fetchone()
        if standing == TenantStanding.SUSPENDED:
            raise Overdue(why)
        if stops_at is not None:
            raise BudgetStopped(stops_at, now)
        if limited or capped or counted:
            use = NO_USE if lease._state.adding else uses([lease.pk]).get(lease.pk, NO_USE)
            set_aside(lease, Outlook(lease.project.tenant, [lease]).needed(lease, use, now=now), use, now=now)
            if capped:
                capping.take(lease, use, now=now)
            elif counted:  # somebody else extends or starts it, who has no cap
                capping.follow(lease, use, now=now, force=True)
        if payment == PaymentTerms.PREPAID:
            covering.take(lease, now=now)

    return judge


def refusal(lease: Lease, *, now: datetime) -> Refused | None:
    """Return what the gate would say to a lease that is not asked for yet; nothing is taken."""
    try:
        with transaction.atomic():
            hold_off_new(lease.tenant_id)
            gate(lease, now=now)()
            transaction.set_rollback(True)
    except (BudgetExceeded, BudgetStopped, CapReached, PaymentRequired, Overdue) as said:
        return said
    return None


def set_aside(
    lease: Lease, wanted: Mapping[int, int], use: Use, *, now: datetime, force: bool = False
) -> None:
    """Let a lease have set aside just so much by month in every budget on its path, or raise BudgetExceeded.

    `force` takes it even where there is no room: it is charged already, or will be. Whoever calls this has held off
    new budgets, so that those on the path stay.
    """
    tenant = lease.project.tenant
    hold, _ = Hold.objects.get_or_create(
        lease_id=lease.pk,
        defaults={"tenant": tenant, "currency": tenant.currency, "opened_at": now, "looked_at": now},
    )
    held = {part.month_id: part for part in HoldPart.objects.filter(hold=hold)}
    parts = []
    for month in _months(lease.project, wanted, held):
        part = part_of(hold, month, wanted, use)
        before = held.get(month.pk)
        more = part.num - (before.num if before else 0)
        if more > 0 and not force and _beyond(month.budget, int(month.taken_num + more)):
            raise _refusal(lease, month, int(more))
        if before is None or (before.num, before.spent_num) != (part.num, part.spent_num):
            parts.append(part)
    write(parts)
    Hold.objects.filter(pk=hold.pk).update(looked_at=now, seq=lease.seq, settled_at=None)


def part_of(hold: Hold, month: BudgetMonth, wanted: Mapping[int, int], use: Use) -> HoldPart:
    """Return what is wanted of a month of a budget, as it is to be written; nothing of one that is not reached."""
    num = wanted.get(month.period_id, 0)
    spent = min(use.by_month.get(month.period_id, 0), num)
    return HoldPart(
        tenant_id=hold.tenant_id, hold=hold, month=month, num=Decimal(num), spent_num=Decimal(spent)
    )


def write(parts: Sequence[HoldPart]) -> None:
    """Write parts, over those that are there."""
    HoldPart.objects.bulk_create(
        parts,
        update_conflicts=True,
        unique_fields=["tenant", "hold", "month"],
        update_fields=["num", "spent_num"],
    )


def months_of(budgets: Sequence[Budget], wanted: Iterable[int]) -> None:
    """Make the months of budgets that are missing; none that ended before its budget was set."""
    spans = BillingPeriod.objects.filter(pk__in=list(wanted)).values_list("pk", "span")
    missing = [
        BudgetMonth(tenant_id=budget.tenant_id, budget=budget, period_id=key)
        for key, span in spans
        for budget in budgets
        if span.upper > budget.made_at
    ]
    BudgetMonth.objects.bulk_create(missing, ignore_conflicts=True)


def _months(project: Project, wanted: Mapping[int, int], held: Iterable[int]) -> list[BudgetMonth]:
    """Return the months that are wanted or held of every budget on the path, locked at once from the root on."""
    budgets = list(Budget.objects.filter(project_id__in=project.path))
    months_of(budgets, wanted)
    found = BudgetMonth.objects.filter(
        Q(budget__in=budgets, period_id__in=list(wanted)) | Q(pk__in=list(held))
    )
    locked = found.select_related("budget__project", "period").select_for_update(of=("self",), no_key=True)
    return list(locked.order_by("budget__project__path__len", "period__span", "pk"))


def _beyond(budget: Budget, num: int) -> bool:
    """Tell whether an exact amount is more than a budget lets begin; a soft one lets begin whatever is asked for."""
    ceiling = budget.ceiling_minor
    return ceiling is not None and num > holding.exact_of(ceiling, budget.currency)


def _refusal(lease: Lease, month: BudgetMonth, more: int) -> BudgetExceeded:
    budget, currency = month.budget, month.budget.currency
    ceiling = budget.ceiling_minor or 0
    room = max(holding.exact_of(ceiling, currency) - int(month.taken_num), 0)
    left = Money(to_minor(room, exponent_of(currency)), currency)
    asked = Money(to_minor_up(more, exponent_of(currency)), currency)
    limit = Money(budget.limit_minor, currency)
    upto = "" if ceiling == budget.limit_minor else f", of which leases may take {Money(ceiling, currency)}"
    where = "this project" if budget.project_id == lease.project_id else "a project above this one"
    return BudgetExceeded(
        f"The budget of {where} for {month.period.label} is {limit}{upto}; {left} of it is left,"
        f" and this could come to {asked} of that month.",
        fix=Fix(
            "Ask for a shorter time or a smaller slice, release a lease, or ask an owner to raise the budget.",
            "GET",
            "/api/v1/budgets",
        ),
        budget=budget.pk,
    )
