"""Ceilings in money, set by those who lead or pay for what is above."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, OuterRef, Q, Subquery, Sum

from billing.domain.money import exponent_of, to_minor, to_minor_up
from billing.domain.periods import month_of
from billing.models import Budget, BudgetMonth, RatedCharge
from billing.services import periods, spend
from billing.services.funds.holds import set_aside
from billing.services.funds.needs import charged_of, needed
from billing.services.funds.settling import WAITS
from broker.domain.states import LeaseState
from broker.models import Lease
from ports import database
from tenants.domain.roles import Grants
from tenants.models import Project, Tenant
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.refusals import Invalid, NotAllowed

ALONE = "SELECT pg_advisory_xact_lock(1, hashtext(%s::text))"
CHARGED_WITHIN = timedelta(hours=1)  # rating runs every half minute
HIGHEST = 10**15  # minor units; what is left of an exact amount's digits is room for sums


@dataclass(frozen=True, slots=True)
class Standing:
    """A budget in a month: minor units, what is held rounded up and what is left rounded down."""

    budget: Budget
    spent: int
    held: int
    left: int

    @property
    def limit(self) -> int:
        return self.budget.limit_minor


@dataclass(frozen=True, slots=True)
class Room:
    """What may still be taken this month of the budget that has least left, in minor units."""

    limit: int
    left: int
    currency: str


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


@transaction.atomic
def set_limit(*, project: Project, limit_minor: int, actor: Actor, now: datetime) -> Budget:
    """Set a ceiling for each month; below what is taken already it only stops new leases.

    A budget that is new counts at once what this month has cost below it, and what runs or waits there may still cost.
    """
    if not 0 <= limit_minor <= HIGHEST:
        raise Invalid("limit", "A budget is nought or more, and no more than there is.", fix="Send less.")
    with (
        database.prepared() as cursor
    ):  # nobody takes money meanwhile: each is counted here, or finds the budget
        cursor.execute(ALONE, [project.tenant_id])
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
        _begin(found, now)
    elif before != limit_minor:
        Budget.objects.filter(pk=found.pk).update(limit_minor=limit_minor, version=F("version") + 1)
        found.refresh_from_db()
    if before != limit_minor:
        _record("budget.set", found, actor=actor, now=now, before=before, amount=limit_minor)
    return found


@transaction.atomic
def remove(budget: Budget, *, actor: Actor, now: datetime) -> None:
    """Take a ceiling away; those above it still hold."""
    _record("budget.remove", budget, actor=actor, now=now, amount=budget.limit_minor)
    budget.delete()


def standing(budgets: Iterable[Budget], *, tenant: Tenant, now: datetime) -> list[Standing]:
    """Return how budgets of a tenant stand in its month; three queries.

    What is spent counts what runs to this second, as on every page; the rest of what is taken is held.
    """
    wanted = list(budgets)
    if not wanted:
        return []
    month = month_of(tenant.time_zone, now)
    rows = BudgetMonth.objects.filter(budget__in=wanted, period__span__contains=now)
    taken = {row.budget_id: int(row.taken_num) for row in rows}
    paths = dict(Project.objects.filter(tenant=tenant).values_list("pk", "path"))
    spent: dict[str, int] = defaultdict(int)
    for line in spend.lines([month.start, month.end], until=now):
        for node in paths[line.project]:
            spent[node] += to_minor(line.exact_num, exponent_of(tenant.currency))
    return [_standing(each, spent[each.project_id], taken.get(each.pk, 0)) for each in wanted]


def room(project: Project, *, now: datetime) -> Room | None:
    """Return what is left of the tightest budget from a project up to the root; None where there is none. One query."""
    month = BudgetMonth.objects.filter(budget=OuterRef("pk"), period__span__contains=now)
    rows = Budget.objects.filter(project__in=project.path).annotate(
        taken=Subquery(month.values("taken_num")[:1])
    )
    rooms = [
        Room(
            budget.limit_minor,
            max(budget.limit_minor - to_minor_up(int(budget.taken or 0), exponent_of(budget.currency)), 0),
            budget.currency,
        )
        for budget in rows
    ]
    return min(rooms, key=lambda each: each.left, default=None)


def _standing(budget: Budget, spent: int, taken: int) -> Standing:
    taken_minor = to_minor_up(taken, exponent_of(budget.currency))
    left = max(budget.limit_minor - max(taken_minor, spent), 0)
    return Standing(budget, spent, max(taken_minor - spent, 0), left)


def _begin(budget: Budget, now: datetime) -> None:
    """Count what this month has cost below a new budget, and what lives there."""
    month = periods.current(budget.project.tenant, now=now)
    below = Project.objects.filter(path__contains=[budget.project_id]).values("pk")
    unsettled = Q(ended_at=None) | Q(ended_at__gt=now - CHARGED_WITHIN)
    living = list(
        Lease.objects.filter(unsettled, project__in=below)
        .select_related("project__tenant", "offering")
        .order_by("pk")
    )
    charges = RatedCharge.objects.filter(project_id__in=below, period_id=month.pk)
    base = charges.exclude(lease_id__in=[lease.pk for lease in living]).aggregate(
        num=Sum("exact_num", default=0)
    )
    sums = dict.fromkeys(("base_num", "taken_num", "spent_num"), base["num"])
    BudgetMonth.objects.create(tenant_id=budget.tenant_id, budget=budget, period=month, **sums)
    for lease in living:
        charged = charged_of(lease.pk)
        runs_on = lease.state in WAITS or lease.state == LeaseState.ACTIVE
        wanted = needed(lease, charged, now=now) if runs_on else charged.by_month
        set_aside(lease, wanted, charged, now=now, force=True)


def _record(action: str, budget: Budget, *, actor: Actor, now: datetime, **detail: object) -> None:
    audit.record(
        action,
        actor=actor,
        now=now,
        tenant_id=budget.tenant_id,
        subject_id=budget.pk,
        subject_label=f"budget of {budget.project.name}",
        project=budget.project_id,
        currency=budget.currency,
        **detail,
    )
