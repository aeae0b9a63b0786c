"""Lease gate: reserve a lease's maximum cost in every budget up to the root."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db import transaction

from billing.domain import lease_holds
from billing.domain.budgets import start_ceiling
from billing.domain.money import Money, exponent_of, to_minor, to_minor_up
from billing.models import AccountStatus, PaymentTerms
from billing.services.funds.costs.hold_context import HoldContext, LeaseHold, open_lease_hold
from billing.services.funds.costs.max_costs import LeaseUsage
from billing.services.funds.holds import token_cap_holds
from billing.services.funds.holds.token_cap_holds import TokenCapReached
from billing.services.funds.wallets import prepaid_holds
from billing.services.funds.wallets.prepaid_holds import PaymentRequired
from broker.models import Lease
from broker.services.quotas import block_new_quotas
from ports.postgres import sql_statements
from ports.postgres.sql_statements import load_sql
from tenants.models import Project
from tenants.services.errors import Fix, ProblemError


class _GateFacts(NamedTuple):
    """What applies to a lease that may queue."""

    budgeted: bool
    stops_at: datetime | None
    capped: bool  # a capped token requests it
    counted: bool  # a capped token has requested it
    payment: str | None
    account_status: str | None
    why: str


class BudgetHoldPart(NamedTuple):
    """A lease's hold on a month of a budget, and the charged part; exact."""

    hold_id: str
    month_id: int
    num: int
    spent_num: int


class _LockedBudgetMonth(NamedTuple):
    """A locked month of a budget, and what a lease holds of it."""

    id: int
    period_id: int
    label: str
    taken_num: int
    budget_id: str
    project_id: str
    currency: str
    limit_minor: int
    stop_new_at: int | None
    held_num: int
    held_spent_num: int | None

    @property
    def ceiling_minor(self) -> int | None:
        return start_ceiling(self.limit_minor, self.stop_new_at)


class BudgetExceeded(ProblemError):
    """A budget on the path has too little left for the lease."""

    code, status, title = "budget-hold-failed", 402, "The budget is exceeded"


class BudgetStopped(ProblemError):
    """A budget on the path stops everything: no lease may start or grow."""

    code, status, title = "budget-stopped", 402, "A budget blocks new leases"

    def __init__(self, at: datetime, now: datetime) -> None:
        when = f"ends all leases here at {at:%Y-%m-%d %H:%M} UTC" if at > now else "ended all leases here"
        super().__init__(
            f"A budget of this project or a parent project {when}. New leases are blocked this month.",
            fix=Fix("Ask an owner to raise that budget.", "GET", "/api/v1/budget-stops"),
        )


class PaymentOverdue(ProblemError):
    """The tenant is suspended for overdue invoices: running leases continue, new ones are refused."""

    code, status, title = "payment-overdue", 402, "New leases are blocked until overdue invoices are paid"

    def __init__(self, why: str) -> None:
        reason = f" {why.rstrip('.')}." if why else ""
        super().__init__(
            f"Your tenant is suspended because of unpaid invoices.{reason}",
            fix=Fix("Pay the overdue invoices, or contact the operator.", "GET", "/api/v1/invoices"),
        )


def gate(lease: Lease, *, now: datetime) -> Callable[[], None]:
    """Reserve the lease's maximum cost in budgets, token cap and prepaid wallet.

    It is reserved in every budget on its path, of the cap of the token that asks, and in its tenant's
    wallet if that pays in advance. Raises BudgetExceeded, BudgetStopped, TokenCapReached, PaymentRequired,
    or PaymentOverdue for a suspended tenant.
    """
    cursor = sql_statements.prepared_cursor()
    values: dict[str, Any] = {"path": lease.project.path, "now": now, "token": lease.requested_with_token}
    cursor.execute(load_sql("billing/funds/budget_gate"), {**values, "lease": lease.pk, "tenant": lease.tenant_id})

    def check() -> None:
        with cursor:
            found = _GateFacts(*cursor.fetchone())
        if found.account_status == AccountStatus.SUSPENDED:
            raise PaymentOverdue(found.why)
        if found.stops_at is not None:
            raise BudgetStopped(found.stops_at, now)
        prepaid = found.payment == PaymentTerms.PREPAID
        limited = found.budgeted or found.capped or found.counted
        if not (limited or prepaid):
            return
        context = open_lease_hold(lease, now=now)
        if limited:
            set_budget_holds(context, context.max_cost.needed(lease, context.usage, now=now))
            if found.capped:
                token_cap_holds.take_token_cap(lease, context.usage, now=now)
            elif found.counted:  # somebody without a cap extends or starts it
                token_cap_holds.update_token_cap_hold(lease, context.usage, now=now, force=True)
        if prepaid:
            prepaid_holds.reserve_next_hour(context, now=now)

    return check


def find_refusal(lease: Lease, *, now: datetime) -> ProblemError | None:
    """Return what the gate would refuse a prospective lease for; nothing is taken."""
    try:
        with transaction.atomic():
            block_new_quotas(lease.tenant_id)
            gate(lease, now=now)()
            transaction.set_rollback(True)
    except (BudgetExceeded, BudgetStopped, TokenCapReached, PaymentRequired, PaymentOverdue) as refusal:
        return refusal
    return None


def set_budget_holds(context: HoldContext, wanted: Mapping[int, int], *, force: bool = False) -> None:
    """Set a lease's holds by month in every budget on its path.

    Raises BudgetExceeded. `force` takes them even beyond the limit: the cost is already charged, or
    will be. The caller has blocked new budgets, so that those on the path stay.
    """
    lease, parts = context.lease, list[BudgetHoldPart]()
    ensure_budget_months(lease.project.path, wanted)
    for month in _lock_budget_months(context.hold, lease.project, wanted):
        part = budget_hold_for(context.hold.id, month.id, month.period_id, wanted, context.usage)
        more = part.num - month.held_num
        if more > 0 and not force and _exceeds_ceiling(month, month.taken_num + more):
            raise _budget_exceeded(lease, month, more)
        if (part.num, part.spent_num) != (month.held_num, month.held_spent_num):
            parts.append(part)
    write_budget_holds(context.hold.tenant_id, parts)


def budget_hold_for(
    hold_id: str, month_id: int, period_id: int, wanted: Mapping[int, int], use: LeaseUsage
) -> BudgetHoldPart:
    """Return the hold on a month of a budget as it is to be written.

    It is zero for a month that the lease does not reach.
    """
    num = wanted.get(period_id, 0)
    return BudgetHoldPart(hold_id, month_id, num, min(use.by_month.get(period_id, 0), num))


def write_budget_holds(tenant_id: str, parts: Sequence[BudgetHoldPart]) -> None:
    """Insert or update holds."""
    if not parts:
        return
    holds, months, nums, spent = zip(*parts, strict=True)
    values = {"holds": holds, "months": months, "nums": nums, "spent": spent}
    with sql_statements.prepared_cursor() as cursor:
        cursor.execute(
            load_sql("billing/funds/write_budget_holds"),
            {"tenant": tenant_id, **{key: list(each) for key, each in values.items()}},
        )


def ensure_budget_months(projects: Sequence[str], wanted: Iterable[int]) -> None:
    """Create the missing months of these projects' budgets.

    None that ended before its budget was set.
    """
    with sql_statements.prepared_cursor() as cursor:
        cursor.execute(
            load_sql("billing/funds/create_budget_months"), {"projects": list(projects), "months": list(wanted)}
        )


def _lock_budget_months(hold: LeaseHold, project: Project, wanted: Iterable[int]) -> list[_LockedBudgetMonth]:
    """Return the wanted and held months of all budgets on the path, locked.

    They are locked in one statement, from the root down.
    """
    values = {"hold": hold.id, "tenant": hold.tenant_id, "path": project.path, "months": list(wanted)}
    months = map(
        _LockedBudgetMonth._make, sql_statements.fetch_rows(load_sql("billing/funds/lock_budget_months"), values)
    )
    # Integers: dividing a Decimal rounds towards zero.
    return [each._replace(taken_num=int(each.taken_num), held_num=int(each.held_num)) for each in months]


def _exceeds_ceiling(month: _LockedBudgetMonth, num: int) -> bool:
    """Return whether an amount exceeds what a budget allows to start.

    A budget that only warns allows any amount.
    """
    most = month.ceiling_minor
    return most is not None and num > lease_holds.exact_from_minor(most, month.currency)


def _budget_exceeded(lease: Lease, month: _LockedBudgetMonth, more: int) -> BudgetExceeded:
    currency, ceiling_minor = month.currency, month.ceiling_minor or 0
    room = max(lease_holds.exact_from_minor(ceiling_minor, currency) - int(month.taken_num), 0)
    left = Money(to_minor(room, exponent_of(currency)), currency)
    needed = Money(to_minor_up(more, exponent_of(currency)), currency)
    limit, most = Money(month.limit_minor, currency), Money(ceiling_minor, currency)
    upto = "" if most == limit else f", of which leases can use {most}"
    where = "this project" if month.project_id == lease.project_id else "a parent project"
    return BudgetExceeded(
        f"The budget of {where} for {month.label} is {limit}{upto}; {left} of it is left,"
        f" and this lease could cost {needed} in that month.",
        fix=Fix(
            "Choose a shorter duration or a smaller slice, release a lease, or ask an owner to raise the budget.",
            "GET",
            "/api/v1/budgets",
        ),
        budget=month.budget_id,
    )
