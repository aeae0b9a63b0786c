"""Who may do what: one table of roles, and how a role on a node covers the tree below it."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

Path = tuple[str, ...]  # project ids from the root to a node; () is the tenant itself


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
        "audit.read",
        "billing.read",
    }
)
OWNS = frozenset({"tenant.write", "owners.write", "billing.write"})

ALLOWED: dict[Role, frozenset[str]] = {
    Role.VIEWER: READS,
    Role.MEMBER: READS | WORKS,
    Role.BILLING: READS | PAYS,
    Role.ADMIN: READS | WORKS | LEADS,
    Role.OWNER: READS | WORKS | PAYS | LEADS | OWNS,
}
ACTIONS = frozenset().union(*ALLOWED.values())

IN_WORDS: dict[Role, str] = {
    Role.OWNER: "may do everything here, including billing and naming other owners",
    Role.ADMIN: "may run leases, invite people, make projects, set quotas and budgets, and see invoices",
    Role.BILLING: "may see leases, and sees and settles everything about money",
    Role.MEMBER: "may launch, stop and extend leases, and see what they cost",
    Role.VIEWER: "may look at leases, quotas, budgets and costs, and change nothing",
}

EVERYTHING = "tenant:admin"
# What a token may be limited to. `x:write` includes `x:read`; `tenant:admin` is all its bearer may.
SCOPES = frozenset(
    {EVERYTHING, *(a.replace(".", ":") for a in ACTIONS if a.endswith((".read", ".write")))}
    - {"owners:write"}
)


def scope_allows(scopes: frozenset[str] | None, action: str) -> bool:
    """Tell whether a credential limited to these scopes reaches an action; None is unlimited."""
    if scopes is None or EVERYTHING in scopes:
        return True
    noun, _, verb = action.partition(".")
    return f"{noun}:{verb}" in scopes or (verb == "read" and f"{noun}:write" in scopes)


def covers(upper: Path, lower: Path) -> bool:
    """Tell whether `lower` is `upper` or lies below it."""
    return lower[: len(upper)] == upper


@dataclass(frozen=True)
class Grant:
    """A role on the tenant (path ()) or on a project and all below it."""

    role: Role
    path: Path = ()


@dataclass(frozen=True)
class Grants:
    """All that one credential may do in one tenant."""

    grants: tuple[Grant, ...] = ()
    scopes: frozenset[str] | None = None
    within: Path = ()  # a token may be confined to a project

    def may(self, action: str, path: Iterable[str] = ()) -> bool:
        """Tell whether the action is allowed on this node; () asks for the tenant as a whole."""
        where = tuple(path)
        return (
            scope_allows(self.scopes, action)
            and covers(self.within, where)
            and any(action in ALLOWED[g.role] and covers(g.path, where) for g in self.grants)
        )

    def may_give(self, role: Role, path: Iterable[str] = ()) -> bool:
        """Tell whether one may give or take a role there: nobody hands out more than they have."""
        where = tuple(path)
        return self.may("members.write", where) and all(self.may(a, where) for a in ALLOWED[role])

    def anywhere(self, action: str) -> bool:
        """Tell whether the action is allowed on any node at all."""
        return scope_allows(self.scopes, action) and bool(self._reach(action))

    def projects(self, action: str) -> frozenset[str] | None:
        """Return the ids of the nodes below which the action is allowed; None is the whole tenant."""
        reach = self._reach(action) if scope_allows(self.scopes, action) else set()
        return None if () in reach else frozenset(path[-1] for path in reach)

    def _reach(self, action: str) -> set[Path]:
        """Where a grant and the token's own fence overlap: the deeper of the two, if one holds the other."""
        allowed = [g.path for g in self.grants if action in ALLOWED[g.role]]
        return {
            max(p, self.within, key=len) for p in allowed if covers(p, self.within) or covers(self.within, p)
        }

    @property
    def highest(self) -> Role | None:
        """The strongest role held on the tenant as a whole, else on any project."""
        order = list(Role)
        held = sorted(self.grants, key=lambda g: (len(g.path) > 0, order.index(g.role)))
        return held[0].role if held else None
