"""Members and root quotas of many tenants at once, for operators; must run as staff."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from django.db.models import Count

from tenants.models import Member, Quota, Tenant


@dataclass(frozen=True, slots=True)
class TenantOverview:
    """Number of members of a tenant, and its root project's quotas by kind."""

    members: int = 0
    quotas: Mapping[str, Quota] = field(default_factory=dict)


def tenant_overviews(tenants: Iterable[Tenant]) -> dict[str, TenantOverview]:
    """Return members and root quotas of each tenant, in two queries."""
    ids = [tenant.pk for tenant in tenants]
    heads = dict(Member.objects.filter(tenant__in=ids).values_list("tenant").annotate(Count("user", distinct=True)))
    quotas: dict[str, dict[str, Quota]] = {pk: {} for pk in ids}
    for quota in Quota.objects.filter(tenant__in=ids, project__parent=None):
        quotas[quota.tenant_id][quota.kind] = quota
    return {pk: TenantOverview(heads.get(pk, 0), quotas[pk]) for pk in ids}
