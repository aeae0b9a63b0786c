"""Authentication of callers, in one round trip, and refusals of what they may not do."""

import hmac
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NoReturn

from ports.postgres import sql_statements
from tenants.domain.credentials import Credential
from tenants.domain.roles import ALLOWED, Role, RoleGrant, RoleGrants, scope_allows, scope_for
from tenants.models import ApiToken, Project, Tenant
from tenants.services.actors import Actor
from tenants.services.errors import Fix, NotAllowed, ObjectNotFound, ProblemError, ProjectArchived, ScopeMissing

SESSION_TENANT_KEY = "tenant"  # session key of the current tenant
LAST_USED_INTERVAL = timedelta(minutes=1)


@dataclass(frozen=True)
class Visitor:
    """Authenticated caller; the current transaction sees the tenant's rows from here on."""

    tenant: Tenant
    actor: Actor
    grants: RoleGrants
    token_id: str = ""
    tenants: tuple[tuple[str, str], ...] = ()  # (id, name) of every tenant the user belongs to
    is_authenticated: bool = True


def _role_grants(held: Iterable[tuple[str, list[str]]]) -> tuple[RoleGrant, ...]:
    return tuple(RoleGrant(Role(role), tuple(path)) for role, path in held)


def _tenant(row: dict[str, Any]) -> Tenant:
    return Tenant.from_db(
        "default",
        ["id", "name", "time_zone", "currency", "suspended_at", "version"],
        [row[n] for n in ("tenant_id", "tenant_name", "time_zone", "currency", "suspended_at", "version")],
    )


def _query_one(sql: str, arguments: list[Any]) -> dict[str, Any] | None:
    with sql_statements.prepared_cursor() as cursor:
        with sql_statements.batch():  # sent together with the request's BEGIN
            cursor.execute(sql, arguments)
        row = cursor.fetchone()
        names = [column.name for column in cursor.description or ()]
    return dict(zip(names, row, strict=True)) if row else None


def authenticate_token(credential: Credential, *, request_id: str, now: datetime) -> Visitor | None:
    """Authenticate the bearer of a token.

    Returns None when it is unknown, expired or revoked, or its bearer has left the tenant.
    """
    row = _query_one("SELECT * FROM knock_with_token(%s, %s, %s)", [credential.prefix, credential.digest, now])
    if row is None or not hmac.compare_digest(row["digest"], credential.digest):
        return None
    if row["last_used_at"] is None or now - row["last_used_at"] >= LAST_USED_INTERVAL:
        _update_last_used(row["token_id"], now=now)
    return Visitor(
        tenant=_tenant(row),
        actor=Actor(row["bearer_kind"], row["bearer_id"], row["bearer_label"], request_id, row["token_id"]),
        grants=RoleGrants(_role_grants(json.loads(row["grants"])), frozenset(row["scopes"]), tuple(row["within"])),
        token_id=row["token_id"],
    )


def authenticate_user(user_id: str, label: str, *, wanted: str, request_id: str) -> Visitor | None:
    """Authenticate a signed-in user in the wanted tenant, else in their oldest.

    Returns None if they belong to none.
    """
    row = _query_one("SELECT * FROM knock_with_user(%s, %s)", [user_id, wanted])
    if row is None:
        return None
    return Visitor(
        tenant=_tenant(row),
        actor=Actor("user", user_id, label, request_id),
        grants=RoleGrants(_role_grants(json.loads(row["grants"]))),
        tenants=tuple((ident, name) for ident, name in json.loads(row["others"])),
    )


def _update_last_used(token_id: str, *, now: datetime) -> None:
    # Parallel requests use the same token: one that finds the row locked leaves the update to the other.
    free = ApiToken.objects.filter(pk=token_id).select_for_update(skip_locked=True)
    ApiToken.objects.filter(pk__in=free.values("pk")).update(last_used_at=now)


class TenantSuspended(ProblemError):
    code, status, title = "tenant-suspended", 403, "This tenant is suspended"


def require_not_suspended(tenant: Tenant) -> None:
    """Refuse any change in a suspended tenant; reading stays allowed."""
    if tenant.suspended_at is not None:
        raise TenantSuspended(
            f"{tenant.name} was suspended on {tenant.suspended_at:%Y-%m-%d}; nothing can be changed.",
            fix="Ask the operators of this installation.",
        )


def roles_allowing(action: str) -> str:
    """Return the roles that allow an action, in words."""
    names = [role.value for role in Role if action in ALLOWED[role]]
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def refuse(action: str, grants: RoleGrants) -> NoReturn:
    """Raise ScopeMissing if the token lacks the scope, else NotAllowed for the role."""
    require_scopes([action], grants)
    raise NotAllowed(
        f"Only {roles_allowing(action)} may do this here.", fix="Ask an owner or admin for that role.", rule=action
    )


def require_scopes(actions: Iterable[str], grants: RoleGrants) -> None:
    """Raise ScopeMissing, which names them, if the token lacks scopes for these actions."""
    missing = [action for action in actions if not scope_allows(grants.scopes, action)]
    if not missing:
        return
    scopes = sorted({scope_for(action) for action in missing})
    named = f"{'scope' if len(scopes) == 1 else 'scopes'} {', '.join(scopes)}"
    raise ScopeMissing(
        f"This token lacks the {named}.",
        fix=Fix(f"Create a token with the {named}.", "POST", "/api/v1/tokens"),
        rule=missing[0],
        scopes=scopes,
    )


def require(grants: RoleGrants, action: str, path: Iterable[str] = ()) -> None:
    """Raise NotAllowed unless the action is allowed on this node; () is the whole tenant."""
    if not grants.may(action, path):
        refuse(action, grants)


def start_project_lookup(project_id: str) -> Callable[[], Project | None]:
    """Query a project; the returned function waits for it."""
    return sql_statements.send_row_query(Project, "id = %s", [project_id])


def project_for(
    grants: RoleGrants, action: str, project_id: str, *, found: Callable[[], Project | None] | None = None
) -> Project:
    """Return an open project in which the caller may act.

    One in which they may neither act nor read is missing, not forbidden.
    """
    project = (found or start_project_lookup(project_id))()
    if project is None or not (grants.may(action, project.path) or grants.may("projects.read", project.path)):
        raise ObjectNotFound(
            "This project does not exist.", fix=Fix("List the projects you can see.", "GET", "/api/v1/projects")
        )
    if project.archived_at is not None:
        raise ProjectArchived(project.name)
    require(grants, action, project.path)
    return project
