"""Tenants with users and credentials for tests."""

import itertools
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from django.test import Client

from ports import clock
from tenants.domain.roles import Role, RoleGrant, RoleGrants
from tenants.models import Member, Project, ServiceAccount, Tenant, User
from tenants.services import members, projects, rls, service_accounts, tenants, tokens
from tenants.services.actors import SYSTEM

NOW = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
ALL_ROLES = RoleGrants((RoleGrant(Role.OWNER),))
_keys = itertools.count()


@dataclass
class TenantWithOwner:
    """A tenant whose users and tokens are created at first use."""

    tenant: Tenant
    root: Project
    owner: User
    people: dict[str, User] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)

    def user_with_role(self, role: Role, *, project: Project | None = None, now: datetime | None = None) -> User:
        """Return a user with this role, created at first use."""
        key = f"{role}@{project.pk if project else ''}"
        if key not in self.people:
            user = User.objects.create_user(f"{role}-{len(self.people)}-{self.tenant.pk}@example.org")
            with rls.tenant_scope(self.tenant.pk):
                members.add(
                    tenant=self.tenant,
                    user=user,
                    role=role,
                    project=project,
                    actor=SYSTEM,
                    now=now or current_time(),
                )
            self.people[key] = user
        return self.people[key]

    def token(
        self,
        role: Role = Role.OWNER,
        *,
        scopes: tuple[str, ...] = ("tenant:admin",),
        project: Project | None = None,
        within: Project | None = None,
    ) -> str:
        """Return the text of a token of a user with this role."""
        key = f"{role}@{project.pk if project else ''}:{','.join(scopes)}:{within.pk if within else ''}"
        if key not in self.tokens:
            user = self.owner if role == Role.OWNER and project is None else self.user_with_role(role, project=project)
            with rls.tenant_scope(self.tenant.pk):
                _, text = tokens.issue(
                    tenant=self.tenant,
                    name=f"test {role}",
                    scopes=scopes,
                    expires_at=current_time() + timedelta(days=30),
                    actor=SYSTEM,
                    now=current_time(),
                    user_id=user.pk,
                    project=within,
                )
            self.tokens[key] = text
        return self.tokens[key]

    def create_project(self, name: str, parent: Project | None = None) -> Project:
        """Make a project below another."""
        with rls.tenant_scope(self.tenant.pk):
            return projects.create(parent=parent or self.root, name=name, actor=SYSTEM, now=current_time())

    def create_service_account(self, name: str = "robot", role: Role = Role.MEMBER) -> ServiceAccount:
        """Make a service account on the whole tenant."""
        with rls.tenant_scope(self.tenant.pk):
            return service_accounts.create(
                tenant=self.tenant,
                name=name,
                role=role,
                project=None,
                grants=ALL_ROLES,
                actor=SYSTEM,
                now=current_time(),
            )

    def membership(self, user: User) -> Member:
        """Return a user's membership of the whole tenant."""
        with rls.tenant_scope(self.tenant.pk):
            return Member.objects.select_related("user", "tenant", "project").get(user=user, project=None)


def current_time() -> datetime:
    """Return the present moment, at which tokens are valid."""
    return clock.now()


def create_tenant_with_owner(
    name: str = "Delta", *, email: str = "", time_zone: str = "Europe/Berlin"
) -> TenantWithOwner:
    """Create a tenant with an owner; row-level security applies again afterwards."""
    owner = User.objects.create_user(email or f"owner@{name.lower().replace(' ', '-')}.example.org")
    with rls.tenant_scope(""):
        tenant, root = tenants.create(
            name=name, owner=owner, time_zone=time_zone, currency="EUR", actor=SYSTEM, now=current_time()
        )
    return TenantWithOwner(tenant, root, owner)


class ApiClient(Client):
    """A test client with bearer token and JSON that leaves its tenant.

    Inside a test's own transaction `app.tenant` would outlive the request, which it never does outside.
    """

    def __init__(self, token: str = "", **defaults: object) -> None:
        headers = {"HTTP_AUTHORIZATION": f"Bearer {token}"} if token else {}
        super().__init__(raise_request_exception=True, **headers, **defaults)  # type: ignore[arg-type]

    def request(self, **request: object) -> object:  # type: ignore[override]
        try:
            return super().request(**request)
        finally:
            leave_tenant()

    def send(self, method: str, path: str, body: object = None, **headers: str) -> object:
        """Send JSON with any headers, written as in HTTP with underscores: If_Match='…'.

        A POST has a key of its own unless the headers name one; an empty one is not sent.
        """
        if method == "POST":
            headers.setdefault("Idempotency_Key", f"key-{next(_keys)}")
        named = {name.replace("_", "-"): value for name, value in headers.items() if value}
        return self.generic(
            method,
            path if path.startswith("/") else f"/api/v1/{path}",
            "" if body is None else json.dumps(body),
            content_type="application/json",
            headers=named,
        )


def leave_tenant() -> None:
    """Leave the tenant, as the end of a transaction does."""
    from django.db import connection

    if connection.in_atomic_block and not connection.needs_rollback:
        rls.enter_tenant("")
