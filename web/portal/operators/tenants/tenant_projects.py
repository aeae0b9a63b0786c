"""The projects of a tenant as operators see them: tree, quotas, spend and budgets."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from billing.domain.periods import month_of
from billing.models import Budget
from billing.services.rating import spend
from tenants.domain import quota_limits
from tenants.models import Project, Quota, QuotaKind, Tenant
from tenants.services.rls import login_role_scope, tenant_scope
from web.portal.projects.quota_fields import QuotaField

MAX_PROJECTS = 100


@dataclass(frozen=True, slots=True)
class ProjectRow:
    """A project with what it and those below it use, spend and may."""

    project: Project
    quotas: tuple[QuotaField, ...]
    spent: int  # minor units this month
    burn: int  # 10⁻⁹ units per hour
    budget: Budget | None

    @property
    def depth(self) -> int:
        return len(self.project.path) - 1

    @property
    def burn_limit(self) -> int:
        """Return the most it may spend per hour, in 10⁻⁹ units; zero without a limit."""
        return next((each.limit_count for each in self.quotas if each.kind == QuotaKind.BURN and each.limit), 0)

    @property
    def units(self) -> QuotaField:
        return self.quotas[0]


def project_rows(tenant: Tenant, *, now: datetime) -> list[ProjectRow]:
    """Return a tenant's open projects, parents before children; six queries, of which three read usage."""
    projects = {each.pk: each for each in Project.objects.filter(tenant=tenant)}
    paths = {key: each.path for key, each in projects.items()}
    limits: dict[str, dict[str, Quota]] = {}
    for quota in Quota.objects.filter(tenant=tenant):
        limits.setdefault(quota.project_id, {})[quota.kind] = quota
    budgets = {each.project_id: each for each in Budget.objects.filter(tenant=tenant)}
    with login_role_scope(), tenant_scope(tenant.pk):
        spent = spend.spend_by_project(month_of(tenant.time_zone, now), paths, tenant.currency, until=now)
        burn = _with_ancestors(spend.hourly_spend_by_project(None, tenant, now=now), paths)
    shown = sorted(
        (each for each in projects.values() if each.archived_at is None),
        key=lambda each: [projects[key].name for key in each.path],
    )
    return [
        ProjectRow(
            each,
            tuple(QuotaField.of(kind, limits.get(each.pk, {}).get(kind), now) for kind in quota_limits.QUOTA_UNITS),
            spent.get(each.pk, 0),
            burn.get(each.pk, 0),
            budgets.get(each.pk),
        )
        for each in shown[:MAX_PROJECTS]
    ]


def _with_ancestors(own: Mapping[str, int], paths: Mapping[str, list[str]]) -> dict[str, int]:
    """Add what each project has to those above it."""
    found: dict[str, int] = {}
    for project, amount in own.items():
        for node in paths[project]:
            found[node] = found.get(node, 0) + amount
    return found
