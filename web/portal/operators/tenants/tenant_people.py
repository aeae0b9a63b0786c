"""Members and tokens of a tenant as operators see them."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Case, QuerySet, When
from django.utils.translation import gettext as _

from tenants.models import ApiToken, Member, Tenant
from web.portal.operators.list_specs import OperatorList
from web.portal.operators.operator_lists import csv_time


@dataclass(frozen=True, slots=True)
class PersonRow:
    """A member or a token: who, with which role, where, and when last seen."""

    key: str
    name: str
    note: str
    role: str
    scope: str
    seen_at: datetime | None


def member_row(each: Member) -> PersonRow:
    return PersonRow(
        each.pk,
        each.user.name or each.user.email,
        each.user.email if each.user.name else "",
        each.role,
        each.project.name if each.project else _("tenant"),
        each.user.last_login,
    )


def token_row(each: ApiToken) -> PersonRow:
    return PersonRow(
        each.pk,
        each.name,
        str(each.user.email if each.user else each.service_account.name if each.service_account else ""),
        ", ".join(each.scopes),
        each.project.name if each.project else _("tenant"),
        each.last_used_at,
    )


def members_of(tenant: Tenant) -> QuerySet[Member]:
    """Return the members, owners first."""
    rows = Member.objects.filter(tenant=tenant).select_related("user", "project")
    return rows.order_by(Case(When(role="owner", then=0), default=1), "created_at", "pk")


def tokens_of(tenant: Tenant, *, now: datetime) -> QuerySet[ApiToken]:
    """Return the tokens that can be used, last used first."""
    rows = ApiToken.objects.filter(tenant=tenant, revoked_at=None, expires_at__gt=now)
    return rows.select_related("user", "service_account", "project").order_by("-last_used_at", "pk")


def _member_cells(each: Member) -> tuple[object, ...]:
    row = member_row(each)
    return (
        row.key,
        each.user.name,
        each.user.email,
        row.role,
        row.scope,
        csv_time(each.created_at),
        csv_time(row.seen_at),
    )


def _token_cells(each: ApiToken) -> tuple[object, ...]:
    row, times = token_row(each), (each.created_at, each.expires_at, each.last_used_at)
    return row.key, row.name, row.note, " ".join(each.scopes), row.scope, *(csv_time(at) for at in times)


MEMBER_LIST = OperatorList(
    name="members",
    heads="member name email role scope created_at last_sign_in_at",
    cells=_member_cells,
    at="created_at",
    search=("user__name", "user__email", "role", "pk"),
)
TENANT_TOKEN_LIST = OperatorList(
    name="tokens",
    heads="token name bearer scopes project created_at expires_at last_used_at",
    cells=_token_cells,
    at="created_at",
    search=("name", "user__email", "service_account__name", "pk"),
)
