"""Saying no for want of a role: the same sentence wherever it is said."""

from collections.abc import Callable, Iterable
from typing import NoReturn

from ports import database
from tenants.domain.roles import ALLOWED, Grants, Role, scope_allows
from tenants.models import Project, Tenant
from tenants.services.refusals import Fix, Missing, NotAllowed, Refused

# By hand, for it stands before every lease: the ORM would take twice as long.
COLUMNS = [field.attname for field in Project._meta.concrete_fields]
OPEN = f"SELECT {', '.join(COLUMNS)} FROM tenants_project WHERE id = %s AND archived_at IS NULL"


class TenantSuspended(Refused):
    code, status, title = "tenant-suspended", 403, "This tenant is suspended"


def not_suspended(tenant: Tenant) -> None:
    """Refuse any change in a suspended tenant; looking stays allowed."""
    if tenant.suspended_at is not None:
        raise TenantSuspended(
            f"{tenant.name} was suspended on {tenant.suspended_at:%Y-%m-%d}; nothing can be changed.",
            fix="Ask the operators of this installation.",
        )


def who_may(action: str) -> str:
    """Name the roles that may, for the sentence that says no."""
    names = [role.value for role in Role if action in ALLOWED[role]]
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def refuse(action: str, grants: Grants) -> NoReturn:
    """Say no, and whether it is the role or the token that stands in the way."""
    if not scope_allows(grants.scopes, action):
        scope = action.replace(".", ":")
        raise NotAllowed(
            f"This token lacks the scope {scope}.",
            fix=Fix(f"Make a token with the scope {scope}.", "POST", "/api/v1/tokens"),
            rule=action,
        )
    raise NotAllowed(
        f"Only {who_may(action)} may do this here.",
        fix="Ask an owner or admin for that role.",
        rule=action,
    )


def require(grants: Grants, action: str, path: Iterable[str] = ()) -> None:
    """Return when the action is allowed on this node (() is the whole tenant), else refuse."""
    if not grants.may(action, path):
        refuse(action, grants)


def look_up(project_id: str) -> Callable[[], Project | None]:
    """Ask for an open project; what is returned waits for the answer."""
    cursor = database.prepared()
    cursor.execute(OPEN, [project_id])

    def read() -> Project | None:
        with cursor:
            row = cursor.fetchone()
        return Project.from_db("default", COLUMNS, row) if row else None

    return read


def project_for(
    grants: Grants, action: str, project_id: str, *, found: Callable[[], Project | None] | None = None
) -> Project:
    """Return an open project the visitor may act in; one they cannot see is missing, not forbidden."""
    project = (found or look_up(project_id))()
    if project is None or not grants.may("projects.read", project.path):
        raise Missing(
            "There is no such project here.",
            fix=Fix("List the projects you can see.", "GET", "/api/v1/projects"),
        )
    require(grants, action, project.path)
    return project
