"""Changes of a user's own account, audited in every tenant they belong to."""

from datetime import datetime

from django.db import transaction
from django.db.models import Model

from tenants.models import Member, User
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.rls import auth_scope, tenant_scope


@transaction.atomic
def audit_own_account(
    action: str,
    *,
    user: User,
    now: datetime,
    request_id: str = "",
    actor: Actor | None = None,
    subject: Model | None = None,
    **detail: object,
) -> None:
    """Audit a change of a user's own account in each of their tenants.

    For a user without a tenant it goes to the installation's audit log. `subject` is what was changed, if
    not the user; `actor` is given where more is known of it than the user and the request.
    """
    with auth_scope():
        theirs = Member.objects.filter(user=user).order_by("tenant").values_list("tenant", flat=True)
        places = list(theirs.distinct())
    actor = actor or Actor("user", user.pk, user.email, request_id)
    about = subject or user
    for tenant_id in places or [""]:
        with tenant_scope(tenant_id):
            audit.record(action, about, str(about), tenant_id, actor=actor, now=now, **detail)


@transaction.atomic
def rename(user: User, *, name: str, request_id: str, now: datetime) -> None:
    """Change a user's own name."""
    before = user.name
    if name == before:
        return
    user.name = name
    user.save(update_fields=["name"])
    audit_own_account("account.rename", user=user, request_id=request_id, now=now, before=before, after=name)
