"""Service accounts: non-human members that authenticate with tokens only."""

from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models import F

from tenants.domain.roles import Role, RoleGrants
from tenants.models import Project, ServiceAccount, Tenant
from tenants.services import audit, tokens
from tenants.services.actors import Actor
from tenants.services.errors import StaleVersion
from tenants.services.members import require_may_give
from tenants.services.projects import NameTaken


@transaction.atomic
def create(
    *, tenant: Tenant, name: str, role: Role, project: Project | None, grants: RoleGrants, actor: Actor, now: datetime
) -> ServiceAccount:
    """Create a service account with a role on the tenant or on a project."""
    require_may_give(grants, role, project)
    try:
        with transaction.atomic():
            account = ServiceAccount.objects.create(
                tenant=tenant,
                project=project,
                name=name,
                role=role,
                made_by=actor.id,
                made_by_label=actor.label,
                created_at=now,
            )
    except IntegrityError:
        raise NameTaken(f"A service account {name} already exists.", fix="Choose another name.") from None
    _record("service_account.create", account, actor=actor, now=now, role=role.value)
    return account


@transaction.atomic
def change_role(
    account: ServiceAccount, *, role: Role, grants: RoleGrants, actor: Actor, now: datetime
) -> ServiceAccount:
    """Change a service account's role on the same node; its tokens follow at once."""
    before = Role(account.role)
    if role == before:
        return account
    require_may_give(grants, before, account.project)
    require_may_give(grants, role, account.project)
    moved = ServiceAccount.objects.filter(pk=account.pk, version=account.version).update(
        role=role, version=F("version") + 1
    )
    if not moved:
        raise StaleVersion("The account was changed in the meantime.", fix="Reload it, then change it.")
    account.role, account.version = role.value, account.version + 1
    _record("service_account.role", account, actor=actor, now=now, before=before.value, after=role.value)
    return account


@transaction.atomic
def close(account: ServiceAccount, *, grants: RoleGrants, actor: Actor, now: datetime) -> None:
    """Close a service account and revoke all its tokens."""
    require_may_give(grants, Role(account.role), account.project)
    if ServiceAccount.objects.filter(pk=account.pk, closed_at=None).update(closed_at=now, version=F("version") + 1):
        tokens.revoke_all_of(tenant=account.tenant, service_account_id=account.pk, actor=actor, now=now)
        _record("service_account.close", account, actor=actor, now=now)


def _record(action: str, account: ServiceAccount, *, actor: Actor, now: datetime, **detail: object) -> None:
    audit.record(action, account, actor=actor, now=now, project=account.project_id or "", **detail)
