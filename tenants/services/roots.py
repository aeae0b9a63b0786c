"""What operators see of many tenants at once: how many people each has, and what it may take. Must run as staff."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from django.db.models import Count

from tenants.models import Member, Quota, Tenant


@dataclass(frozen=True, slots=True)
class Standing:
    """One tenant's people, and the quotas of its root project by kind."""

    members: int = 0
    quotas: Mapping[str, Quota] = field(default_factory=dict)


def standings(tenants: Iterable[Tenant]) -> dict[str, Standing]:
    """Return how each tenant stands, however many there are; two queries."""
    ids = [tenant.pk for tenant in tenants]
    heads = dict(
        Member.objects.filter(tenant__in=ids).values_list("tenant").annotate(Count("user", distinct=True))
    )
    quotas: dict[str, dict[str, Quota]] = {pk: {} for pk in ids}
    for quota in Quota.objects.filter(tenant__in=ids, project__parent=None):
        quotas[quota.tenant_id][quota.kind] = quota
    return {pk: Standing(heads.get(pk, 0), quotas[pk]) for pk in ids}
