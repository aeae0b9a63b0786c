"""Roles, their permissions, and how a role on a project covers its subtree."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

NodePath = tuple[str, ...]  # project ids from the root to a node; () is the tenant itself


class Role(StrEnum):
    OWNER = "owner"
    ADMIN = "admin"
    BILLING = "billing"
    MEMBER = "member"
    VIEWER = "viewer"


READS = frozenset(
    {
        "tenant.read",
        "projects.read",
        "members.read",
        "offerings.read",
        "leases.read",
        "quotas.read",
        "budgets.read",
        "usage.read",
        "tokens.read",  # one's own
        "tokens.write",  # one's own; never more than its bearer may
        "ssh_keys.read",  # one's own
        "ssh_keys.write",  # one's own
        "secrets.read",  # names, never values
        "templates.read",
        "approvals.read",  # of launches in projects one sees
    }
)
WORKS = frozenset({"leases.write"})
PAYS = frozenset({"billing.read", "billing.write", "budgets.write"})
LEADS = frozenset(
    {
        "projects.write",
        "members.write",
        "invitations.read",
        "quotas.write",
        "budgets.write",
        "tokens.all",
        "secrets.write",
        "templates.write",
        "audit.read",
        "billing.read",
    }
)
OWNS = frozenset({"tenant.write", "owners.write", "billing.write", "approvals.write"})

ALLOWED: dict[Role, frozenset[str]] = {
    Role.VIEWER: READS,
    Role.MEMBER: READS | WORKS,
    Role.BILLING: READS | PAYS,
    Role.ADMIN: READS | WORKS | LEADS,
    Role.OWNER: READS | WORKS | PAYS | LEADS | OWNS,
}
PRIVILEGED_ROLES = frozenset({Role.OWNER, Role.ADMIN, Role.BILLING})  # may manage people, or spend and see money
ACTIONS = frozenset().union(*ALLOWED.values())

ROLE_DESCRIPTIONS: dict[Role, str] = {
    Role.OWNER: "has full access, including billing, approving launches and adding owners",
    Role.ADMIN: "can run leases, view invoices, and manage people, projects, quotas, budgets, secrets and templates",
    Role.BILLING: "can view leases and manage billing",
    Role.MEMBER: "can launch, stop and extend leases, and view their cost",
    Role.VIEWER: "can view leases, quotas, budgets and costs, but not change them",
}

ADMIN_SCOPE = "tenant:admin"
# Scopes of tokens. `x:write` includes `x:read`; `tenant:admin` is all its bearer may do.
SCOPES = frozenset(
    {ADMIN_SCOPE, *(a.replace(".", ":") for a in ACTIONS if a.endswith((".read", ".write")))} - {"owners:write"}
)


def scope_allows(scopes: frozenset[str] | None, action: str) -> bool:
    """Return whether a credential with these scopes allows an action; None is unlimited."""
    if scopes is None or ADMIN_SCOPE in scopes:
        return True
    noun, _, verb = action.partition(".")
    return f"{noun}:{verb}" in scopes or (verb == "read" and f"{noun}:write" in scopes)


def scope_for(action: str) -> str:
    """Return the narrowest scope that allows an action."""
    scope = action.replace(".", ":")
    return scope if scope in SCOPES else ADMIN_SCOPE


def covers(upper: NodePath, lower: NodePath) -> bool:
    """Return whether `lower` is `upper` or lies below it."""
    return lower[: len(upper)] == upper


@dataclass(frozen=True)
class RoleGrant:
    """Role on the tenant (path ()) or on a project and everything below it."""

    role: Role
    path: NodePath = ()


@dataclass(frozen=True)
class RoleGrants:
    """Everything one credential may do in one tenant."""

    grants: tuple[RoleGrant, ...] = ()
    scopes: frozenset[str] | None = None
    within: NodePath = ()  # a token may be confined to a project

    def may(self, action: str, path: Iterable[str] = ()) -> bool:
        """Return whether the action is allowed on this node; () is the whole tenant."""
        where = tuple(path)
        return (
            scope_allows(self.scopes, action)
            and covers(self.within, where)
            and any(action in ALLOWED[g.role] and covers(g.path, where) for g in self.grants)
        )

    def may_give(self, role: Role, path: Iterable[str] = ()) -> bool:
        """Return whether the caller may grant or revoke a role there.

        Nobody may grant more than they have.
        """
        where = tuple(path)
        return self.may("members.write", where) and all(self.may(a, where) for a in ALLOWED[role])

    def anywhere(self, action: str) -> bool:
        """Return whether the action is allowed on any node."""
        return scope_allows(self.scopes, action) and bool(self._reach(action))

    def projects(self, action: str) -> frozenset[str] | None:
        """Return the ids of the nodes below which the action is allowed.

        None stands for the whole tenant.
        """
        reach = self._reach(action) if scope_allows(self.scopes, action) else set()
        return None if () in reach else frozenset(path[-1] for path in reach)

    def _reach(self, action: str) -> set[NodePath]:
        """Return the paths where grants and the token's restriction overlap.

        Each is the deeper of the two, if one contains the other.
        """
        allowed = [g.path for g in self.grants if action in ALLOWED[g.role]]
        return {max(p, self.within, key=len) for p in allowed if covers(p, self.within) or covers(self.within, p)}

    @property
    def highest(self) -> Role | None:
        """Strongest role on the tenant as a whole, else on any project."""
        order = list(Role)
        held = sorted(self.grants, key=lambda g: (len(g.path) > 0, order.index(g.role)))
        return held[0].role if held else None
