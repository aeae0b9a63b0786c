"""Service accounts: machines with a role, that sign in with tokens only."""

from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models import F

from tenants.domain.roles import Grants, Role
from tenants.models import Project, ServiceAccount, Tenant
from tenants.services import audit, tokens
from tenants.services.actors import Actor
from tenants.services.members import must_give
from tenants.services.projects import NameTaken
from tenants.services.refusals import Stale


@transaction.atomic
def create(
    *,
    tenant: Tenant,
    name: str,
    role: Role,
    project: Project | None,
    grants: Grants,
    actor: Actor,
    now: datetime,
) -> ServiceAccount:
    """Make a machine account with a role on the tenant or on a project and all below it."""
    must_give(grants, role, project)
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
        raise NameTaken(f"There is already a service account {name}.", fix="Choose another name.") from None
    _record("service_account.create", account, actor=actor, now=now, role=role.value)
    return account


@transaction.atomic
def change_role(
    account: ServiceAccount, *, role: Role, grants: Grants, actor: Actor, now: datetime
) -> ServiceAccount:
    """Give a machine account another role on the same node; its tokens follow at once."""
    before = Role(account.role)
    if role == before:
        return account
    must_give(grants, before, account.project)
    must_give(grants, role, account.project)
    moved = ServiceAccount.objects.filter(pk=account.pk, version=account.version).update(
        role=role, version=F("version") + 1
    )
    if not moved:
        raise Stale("The account was changed in the meantime.", fix="Read it again, then change it.")
    account.role, account.version = role.value, account.version + 1
    _record("service_account.role", account, actor=actor, now=now, before=before.value, after=role.value)
    return account


@transaction.atomic
def close(account: ServiceAccount, *, grants: Grants, actor: Actor, now: datetime) -> None:
    """End a machine account and every token of it."""
    must_give(grants, Role(account.role), account.project)
    if ServiceAccount.objects.filter(pk=account.pk, closed_at=None).update(
        closed_at=now, version=F("version") + 1
    ):
        tokens.revoke_all_of(tenant=account.tenant, service_account_id=account.pk, actor=actor, now=now)
        _record("service_account.close", account, actor=actor, now=now)


def _record(action: str, account: ServiceAccount, *, actor: Actor, now: datetime, **detail: object) -> None:
    audit.record(
        action,
        actor=actor,
        now=now,
        tenant_id=account.tenant_id,
        subject_id=account.pk,
        subject_label=account.name,
        project=account.project_id or "",
        **detail,
    )
