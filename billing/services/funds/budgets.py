"""Ceilings in money, set by those who lead or pay for what is above."""

from datetime import datetime

from django.db import transaction
from django.db.models import F

from billing.domain.money import HIGHEST, Money
from billing.domain.watching import StopOf, Terms, written
from billing.models import Budget, BudgetStop
from billing.services.funds import beginning, lifting
from billing.services.post import queue
from billing.services.post.written import clock_of
from ports import database
from tenants.domain.roles import Grants
from tenants.models import Project
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.refusals import Invalid, NotAllowed

ALONE = "SELECT pg_advisory_xact_lock(1, hashtext(%s::text))"

ENDS = {StopOf.ALL: "all that runs there was to end", StopOf.IDLE: "what is idle there was to end"}


def may_set(grants: Grants, project: Project) -> bool:
    """Tell whether one leads or pays for more than the project: its own ceiling is set from above."""
    return grants.may("budgets.write", project.path[:-1])


def must_lead_above(grants: Grants, project: Project) -> None:
    """Raise NotAllowed for everybody else."""
    if not may_set(grants, project):
        raise NotAllowed(
            f"The budget of {project.name} is set by those who lead what is above it.",
            fix="Ask an owner, an admin or whoever pays for the whole tenant, or set budgets on the projects below.",
        )


def alone(tenant_id: str) -> None:
    """Let nobody of the tenant take money before this transaction ends: each is counted by then, or finds the budget.

    First of all locks, as whoever takes money holds it off first of all.
    """
    with database.prepared() as cursor:
        cursor.execute(ALONE, [tenant_id])


@transaction.atomic
def set_limit(
    *, project: Project, limit_minor: int, actor: Actor, now: datetime, terms: Terms | None = None
) -> Budget:
    """Set a ceiling for each month, and what happens at which share of it; without `terms` those stay as they are.

    Below what is taken already it only stops new leases. A budget that is new counts at once what this month has cost
    below it, and what runs or waits there may still cost. What was told and is no longer so begins anew, and a stop
    whose share is no longer reached is called off.
    """
    if not 0 <= limit_minor <= HIGHEST:
        raise Invalid("limit", "A budget is nought or more, and no more than there is.", fix="Send less.")
    alone(project.tenant_id)
    found = Budget.objects.select_for_update().filter(project=project).first()
    before = _said(found) if found else {}
    if found is None:
        found = Budget.objects.create(
            tenant_id=project.tenant_id,
            project=project,
            currency=project.tenant.currency,
            limit_minor=limit_minor,
            made_at=now,
            **_columns(terms or Terms()),
        )
        beginning.count(found, now=now)
    elif (found.limit_minor, found.terms) != (limit_minor, terms or found.terms):
        wanted = _columns(terms or found.terms)
        Budget.objects.filter(pk=found.pk).update(limit_minor=limit_minor, version=F("version") + 1, **wanted)
        found.refresh_from_db()
        lifting.lift(found, now=now)
    if before != (after := _said(found)):
        _record("budget.set", found, actor=actor, now=now, **_changes(before, after))
    return found


@transaction.atomic
def remove(budget: Budget, *, actor: Actor, now: datetime) -> None:
    """Take a ceiling away; those above it still hold. Who was told of a stop is told that it is off."""
    alone(budget.tenant_id)
    said = {"before": str(Money(budget.limit_minor, budget.currency))}
    if announced := _announced(budget, now):
        said["called off"] = announced
        queue.put("budget-removed", budget.pk, tenant_id=budget.tenant_id, now=now)
    _record("budget.remove", budget, actor=actor, now=now, **said)
    budget.delete()


def _announced(budget: Budget, now: datetime) -> str:
    """Say what was told to be stopped and is not done, with its moment: once the budget is gone nothing else can."""
    waits = BudgetStop.objects.filter(budget=budget, lifted_at=None, done_at=None, period__span__contains=now)
    return " and ".join(
        f"{ENDS[StopOf(stop.what)]} at {clock_of(stop.due_at, budget.project.tenant.time_zone)}"
        for stop in waits.order_by("due_at")
    )


def _columns(terms: Terms) -> dict[str, object]:
    return {
        "thresholds": list(terms.thresholds),
        "forecast_thresholds": list(terms.forecast_thresholds),
        "stop_new_at": terms.stop_new_at,
        "stop_idle_at": terms.stop_idle_at,
        "stop_all_at": terms.stop_all_at,
        "grace_minutes": terms.grace_minutes,
    }


def _said(budget: Budget) -> dict[str, str]:
    """Say what a budget is, as the trail does."""
    terms = budget.terms
    return {
        "limit": str(Money(budget.limit_minor, budget.currency)),
        "told at": written(terms.thresholds),
        "forecast told at": written(terms.forecast_thresholds),
        **{
            name: "never" if share is None else f"{share} %"
            for name, share in (
                ("new stopped at", terms.stop_new_at),
                ("idle stopped at", terms.stop_idle_at),
                ("all stopped at", terms.stop_all_at),
            )
        },
        "grace": f"{terms.grace_minutes} min",
    }


def _changes(before: dict[str, str], after: dict[str, str]) -> dict[str, str]:
    """Return what the trail says of a change: the limit, and of the rest only what is otherwise."""
    said = {"after": after["limit"]} if before.get("limit") != after["limit"] else {}
    if before and said:
        said["before"] = before["limit"]
    usual = before or _USUAL
    rest = {name: text for name, text in after.items() if name != "limit" and usual[name] != text}
    return {**said, **rest}


_USUAL = _said(Budget(limit_minor=0, currency="EUR"))


def _record(action: str, budget: Budget, *, actor: Actor, now: datetime, **said: str) -> None:
    audit.record(
        action,
        actor=actor,
        now=now,
        tenant_id=budget.tenant_id,
        subject_id=budget.pk,
        subject_label=f"budget of {budget.project.name}",
        project=budget.project_id,
        **said,
    )
