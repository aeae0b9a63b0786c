"""Ceilings in money, set by those who lead or pay for what is above."""

from datetime import datetime

from django.db import transaction
from django.db.models import F

from billing.domain.money import HIGHEST, Money
from billing.models import Budget
from billing.services.funds import beginning
from ports import database
from tenants.domain.roles import Grants
from tenants.models import Project
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.refusals import Invalid, NotAllowed

ALONE = "SELECT pg_advisory_xact_lock(1, hashtext(%s::text))"


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
def set_limit(*, project: Project, limit_minor: int, actor: Actor, now: datetime) -> Budget:
    """Set a ceiling for each month; below what is taken already it only stops new leases.

    A budget that is new counts at once what this month has cost below it, and what runs or waits there may still cost.
    """
    if not 0 <= limit_minor <= HIGHEST:
        raise Invalid("limit", "A budget is nought or more, and no more than there is.", fix="Send less.")
    alone(project.tenant_id)
    found = Budget.objects.select_for_update().filter(project=project).first()
    before = found.limit_minor if found else None
    if found is None:
        found = Budget.objects.create(
            tenant_id=project.tenant_id,
            project=project,
            currency=project.tenant.currency,
            limit_minor=limit_minor,
            made_at=now,
        )
        beginning.count(found, now=now)
    elif before != limit_minor:
        Budget.objects.filter(pk=found.pk).update(limit_minor=limit_minor, version=F("version") + 1)
        found.refresh_from_db()
    if before != limit_minor:
        _record("budget.set", found, actor=actor, now=now, before=before, after=limit_minor)
    return found


@transaction.atomic
def remove(budget: Budget, *, actor: Actor, now: datetime) -> None:
    """Take a ceiling away; those above it still hold."""
    alone(budget.tenant_id)
    _record("budget.remove", budget, actor=actor, now=now, before=budget.limit_minor, after=None)
    budget.delete()


def _record(
    action: str, budget: Budget, *, actor: Actor, now: datetime, before: int | None, after: int | None
) -> None:
    audit.record(
        action,
        actor=actor,
        now=now,
        tenant_id=budget.tenant_id,
        subject_id=budget.pk,
        subject_label=f"budget of {budget.project.name}",
        project=budget.project_id,
        **{
            name: str(Money(minor, budget.currency))
            for name, minor in (("before", before), ("after", after))
            if minor is not None
        },
    )
