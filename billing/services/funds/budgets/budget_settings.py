"""Budgets: ceilings in money, set by those responsible for the projects above."""

from datetime import datetime

from django.db import transaction
from django.db.models import F

from billing.domain.budgets import BudgetTerms, StopScope, format_percents
from billing.domain.money import MAX_MINOR, Money
from billing.models import Budget, BudgetStop
from billing.services.funds.budgets import budget_increases, opening_amounts
from billing.services.notifications import email_queue
from billing.services.notifications.email_message import format_local_time
from ports.postgres import sql_statements
from tenants.domain.roles import RoleGrants
from tenants.models import Project
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue, NotAllowed

TENANT_FUNDS_LOCK_SQL = "SELECT pg_advisory_xact_lock(1, hashtext(%s::text))"

STOP_TEXTS = {StopScope.ALL: "the stop of all leases", StopScope.IDLE: "the stop of idle leases"}


def may_set_budget(grants: RoleGrants, project: Project) -> bool:
    """Return whether the user may set a project's budget.

    A budget is set from above: it takes the permission on a project above it.
    """
    return grants.may("budgets.write", project.path[:-1])


def require_may_set_budget(grants: RoleGrants, project: Project) -> None:
    """Raise NotAllowed for anyone who may not set the project's budget."""
    if not may_set_budget(grants, project):
        raise NotAllowed(
            f"The budget of {project.name} can only be set from a parent project.",
            fix="Ask an owner, admin or billing member of the tenant, or set budgets on sub-projects.",
        )


def lock_tenant_funds(tenant_id: str) -> None:
    """Lock the tenant so that no money is taken until this transaction ends.

    Whoever took money before is counted; whoever comes later finds the budget. It is the first of all
    locks, as for everyone who takes money.
    """
    with sql_statements.prepared_cursor() as cursor:
        cursor.execute(TENANT_FUNDS_LOCK_SQL, [tenant_id])


@transaction.atomic
def set_budget(
    *, project: Project, limit_minor: int, actor: Actor, now: datetime, terms: BudgetTerms | None = None
) -> Budget:
    """Set a project's monthly ceiling, and what happens at which share of it.

    Without `terms` those stay as they are. A limit below what is already held only stops new leases. A
    new budget counts at once what this month has cost below it, and what running and waiting leases may
    still cost. Alerts that no longer apply are reset, and a stop whose share is no longer reached is
    cancelled.
    """
    if not 0 <= limit_minor <= MAX_MINOR:
        raise InvalidValue("limit", "The budget must be 0 or more and below the maximum.", fix="Enter a lower amount.")
    lock_tenant_funds(project.tenant_id)
    found = Budget.objects.select_for_update().filter(project=project).first()
    before = _describe_budget(found) if found else {}
    if found is None:
        found = Budget.objects.create(
            tenant_id=project.tenant_id,
            project=project,
            currency=project.tenant.currency,
            limit_minor=limit_minor,
            made_at=now,
            **_budget_columns(terms or BudgetTerms()),
        )
        opening_amounts.open_budget_month(found, now=now)
    elif (found.limit_minor, found.terms) != (limit_minor, terms or found.terms):
        wanted = _budget_columns(terms or found.terms)
        Budget.objects.filter(pk=found.pk).update(limit_minor=limit_minor, version=F("version") + 1, **wanted)
        found.refresh_from_db()
        budget_increases.apply_budget_change(found, now=now)
    if before != (after := _describe_budget(found)):
        _record_budget("budget.set", found, actor=actor, now=now, **_describe_changes(before, after))
    return found


@transaction.atomic
def remove_budget(budget: Budget, *, actor: Actor, now: datetime) -> None:
    """Remove a budget; those above it still hold.

    People who were told of a planned stop are told that it is cancelled.
    """
    lock_tenant_funds(budget.tenant_id)
    details = {"before": str(Money(budget.limit_minor, budget.currency))}
    if announced := _announced_stops(budget, now):
        details["cancelled"] = announced
        email_queue.enqueue_email("budget-removed", budget.pk, tenant_id=budget.tenant_id, now=now)
    _record_budget("budget.remove", budget, actor=actor, now=now, **details)
    budget.delete()


def _announced_stops(budget: Budget, now: datetime) -> str:
    """Describe the announced stops that are not done, with their times.

    Once the budget is deleted nothing else can.
    """
    waits = BudgetStop.objects.filter(budget=budget, lifted_at=None, done_at=None, period__span__contains=now)
    return " and ".join(
        f"{STOP_TEXTS[StopScope(stop.what)]} at {format_local_time(stop.due_at, budget.project.tenant.time_zone)}"
        for stop in waits.order_by("due_at")
    )


def _budget_columns(terms: BudgetTerms) -> dict[str, object]:
    return {
        "thresholds": list(terms.thresholds),
        "forecast_thresholds": list(terms.forecast_thresholds),
        "stop_new_at": terms.stop_new_at,
        "stop_idle_at": terms.stop_idle_at,
        "stop_all_at": terms.stop_all_at,
        "grace_minutes": terms.grace_minutes,
    }


def _describe_budget(budget: Budget) -> dict[str, str]:
    """Describe a budget for the audit log."""
    terms = budget.terms
    return {
        "limit": str(Money(budget.limit_minor, budget.currency)),
        "alerts at": format_percents(terms.thresholds),
        "forecast alerts at": format_percents(terms.forecast_thresholds),
        **{
            name: "never" if share is None else f"{share} %"
            for name, share in (
                ("new leases blocked at", terms.stop_new_at),
                ("idle leases end at", terms.stop_idle_at),
                ("all leases end at", terms.stop_all_at),
            )
        },
        "grace": f"{terms.grace_minutes} min",
    }


def _describe_changes(before: dict[str, str], after: dict[str, str]) -> dict[str, str]:
    """Return a change for the audit log: the limit, and other terms that differ."""
    details = {"after": after["limit"]} if before.get("limit") != after["limit"] else {}
    if before and details:
        details["before"] = before["limit"]
    usual = before or _DEFAULTS
    rest = {name: text for name, text in after.items() if name != "limit" and usual[name] != text}
    return {**details, **rest}


_DEFAULTS = _describe_budget(Budget(limit_minor=0, currency="EUR"))


def _record_budget(action: str, budget: Budget, *, actor: Actor, now: datetime, **details: str) -> None:
    audit.record(
        action, budget, f"budget of {budget.project.name}", actor=actor, now=now, project=budget.project_id, **details
    )
