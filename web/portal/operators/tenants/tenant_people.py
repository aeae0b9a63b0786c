"""Members and tokens of a tenant as operators see them."""

from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _

from tenants.models import ApiToken, Member, Tenant

MAX_PEOPLE = 50


@dataclass(frozen=True, slots=True)
class PersonRow:
    """A member or a token: who, with which role, where, and when last seen."""

    key: str
    name: str
    note: str
    role: str
    scope: str
    seen_at: datetime | None


def member_rows(tenant: Tenant) -> list[PersonRow]:
    """Return the members, owners first; one query."""
    rows = Member.objects.filter(tenant=tenant).select_related("user", "project").order_by("created_at", "pk")
    found = [
        PersonRow(
            each.pk,
            each.user.name or each.user.email,
            each.user.email if each.user.name else "",
            each.role,
            each.project.name if each.project else _("tenant"),
            each.user.last_login,
        )
        for each in rows[:MAX_PEOPLE]
    ]
    return sorted(found, key=lambda each: each.role != "owner")


def token_rows(tenant: Tenant, *, now: datetime) -> list[PersonRow]:
    """Return the tokens that can be used, last used first; one query."""
    rows = ApiToken.objects.filter(tenant=tenant, revoked_at=None, expires_at__gt=now)
    rows = rows.select_related("user", "service_account", "project").order_by("-last_used_at", "pk")
    return [
        PersonRow(
            each.pk,
            each.name,
            str(each.user.email if each.user else each.service_account.name if each.service_account else ""),
            ", ".join(each.scopes),
            each.project.name if each.project else _("tenant"),
            each.last_used_at,
        )
        for each in rows[:MAX_PEOPLE]
    ]
