"""Changes of a user's own account, audited in every tenant they belong to."""

from datetime import datetime

from django.db import transaction

from tenants.models import Member, User
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.rls import auth_scope, tenant_scope


@transaction.atomic
def audit_own_account(action: str, *, user: User, request_id: str, now: datetime, **detail: object) -> None:
    """Audit a change of a user's own account in each of their tenants.

    For a user without a tenant it goes to the installation's audit log.
    """
    with auth_scope():
        theirs = Member.objects.filter(user=user).order_by("tenant").values_list("tenant", flat=True)
        places = list(theirs.distinct())
    actor = Actor("user", user.pk, user.email, request_id)
    for tenant_id in places or [""]:
        with tenant_scope(tenant_id):
            audit.record(action, user, user.email, tenant_id, actor=actor, now=now, **detail)


@transaction.atomic
def rename(user: User, *, name: str, request_id: str, now: datetime) -> None:
    """Change a user's own name."""
    before = user.name
    if name == before:
        return
    user.name = name
    user.save(update_fields=["name"])
    audit_own_account("account.rename", user=user, request_id=request_id, now=now, before=before, after=name)
