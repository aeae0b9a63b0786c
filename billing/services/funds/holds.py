"""No lease queues before the money that it may come to is set aside in every budget from its project up to the root."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from django.db import transaction

from billing.domain import holding
from billing.domain.money import Money, exponent_of, to_minor, to_minor_up
from billing.domain.watching import ceiling
from billing.models import PaymentTerms, TenantStanding
from billing.services.funds import capping
from billing.services.funds.capping import CapReached
from billing.services.funds.looking import Held, Look, look_at
from billing.services.funds.needs import Use
from billing.services.statements import statement
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


class Part(NamedTuple):
    """What a lease has set aside of a month of a budget, and what of it is charged; exact."""

    hold_id: str
    month_id: int
    num: int
    spent_num: int


class _Month(NamedTuple):
    """A month of a budget that is kept, and what a lease holds of it."""

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
        return ceiling(self.limit_minor, self.stop_new_at)


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
        prepaid = payment == PaymentTerms.PREPAID
        if not (limited or capped or counted or prepaid):
            return
        look = look_at(lease, now=now)
        if limited or capped or counted:
            set_aside(look, look.outlook.needed(lease, look.use, now=now))
            if capped:
                capping.take(lease, look.use, now=now)
            elif counted:  # somebody else extends or starts it, who has no cap
                capping.follow(lease, look.use, now=now, force=True)
        if prepaid:
            covering.take(look, now=now)

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


def set_aside(look: Look, wanted: Mapping[int, int], *, force: bool = False) -> None:
    """Let a lease have set aside just so much by month in every budget on its path, or raise BudgetExceeded.

    `force` takes it even where there is no room: it is charged already, or will be. Whoever calls this has held off
    new budgets, so that those on the path stay.
    """
    lease, parts = look.lease, list[Part]()
    months_of(lease.project.path, wanted)
    for month in _locked(look.hold, lease.project, wanted):
        part = part_of(look.hold.id, month.id, month.period_id, wanted, look.use)
        more = part.num - month.held_num
        if more > 0 and not force and _beyond(month, month.taken_num + more):
            raise _refusal(lease, month, more)
        if (part.num, part.spent_num) != (month.held_num, month.held_spent_num):
            parts.append(part)
    write(look.hold.tenant_id, parts)


def part_of(hold_id: str, month_id: int, period_id: int, wanted: Mapping[int, int], use: Use) -> Part:
    """Return what is wanted of a month of a budget, as it is to be written; nothing of one that is not reached."""
    num = wanted.get(period_id, 0)
    return Part(hold_id, month_id, num, min(use.by_month.get(period_id, 0), num))


def write(tenant_id: str, parts: Sequence[Part]) -> None:
    """Write parts, over those that are there."""
    if not parts:
        return
    holds, months, nums, spent = zip(*parts, strict=True)
    asked = {"holds": holds, "months": months, "nums": nums, "spent": spent}
    with database.prepared() as cursor:
        cursor.execute(
            statement("hold_parts"), {"tenant": tenant_id, **{key: list(each) for key, each in asked.items()}}
        )


def months_of(projects: Sequence[str], wanted: Iterable[int]) -> None:
    """Make the months of these projects' budgets that are missing; none that ended before its budget was set."""
    with database.prepared() as cursor:
        cursor.execute(statement("budget_months"), {"projects": list(projects), "months": list(wanted)})


def _locked(hold: Held, project: Project, wanted: Iterable[int]) -> list[_Month]:
    """Return the months that are wanted or held of every budget on the path, locked at once from the root on."""
    asked = {"hold": hold.id, "tenant": hold.tenant_id, "path": project.path, "months": list(wanted)}
    months = map(_Month._make, database.rows(statement("budget_lock"), asked))
    # Integers, for a Decimal is rounded towards nought where it is divided.
    return [each._replace(taken_num=int(each.taken_num), held_num=int(each.held_num)) for each in months]


def _beyond(month: _Month, num: int) -> bool:
    """Tell whether an exact amount is more than a budget lets begin; a soft one lets begin whatever is asked for."""
    most = month.ceiling_minor
    return most is not None and num > holding.exact_of(most, month.currency)


def _refusal(lease: Lease, month: _Month, more: int) -> BudgetExceeded:
    currency, ceiling_minor = month.currency, month.ceiling_minor or 0
    room = max(holding.exact_of(ceiling_minor, currency) - int(month.taken_num), 0)
    left = Money(to_minor(room, exponent_of(currency)), currency)
    asked = Money(to_minor_up(more, exponent_of(currency)), currency)
    limit, most = Money(month.limit_minor, currency), Money(ceiling_minor, currency)
    upto = "" if most == limit else f", of which leases may take {most}"
    where = "this project" if month.project_id == lease.project_id else "a project above this one"
    return BudgetExceeded(
        f"The budget of {where} for {month.label} is {limit}{upto}; {left} of it is left,"
        f" and this could come to {asked} of that month.",
        fix=Fix(
            "Ask for a shorter time or a smaller slice, release a lease, or ask an owner to raise the budget.",
            "GET",
            "/api/v1/budgets",
        ),
        budget=month.budget_id,
    )
