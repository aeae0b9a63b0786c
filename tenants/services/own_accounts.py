"""What people change about themselves: a row in the trail of every tenant they belong to, for it concerns them all."""

from datetime import datetime

from django.db import transaction

from tenants.models import Member, User
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.walls import as_door, as_tenant


@transaction.atomic
def note(action: str, *, user: User, request_id: str, now: datetime, **detail: object) -> None:
    """Write down a change of somebody's own account; of who belongs to no tenant, in the installation's trail."""
    with as_door():
        theirs = Member.objects.filter(user=user).order_by("tenant").values_list("tenant", flat=True)
        places = list(theirs.distinct())
    actor = Actor("user", user.pk, user.email, request_id)
    for tenant_id in places or [""]:
        with as_tenant(tenant_id):
            audit.record(
                action,
                actor=actor,
                now=now,
                tenant_id=tenant_id,
                subject_id=user.pk,
                subject_label=user.email,
                **detail,
            )


@transaction.atomic
def rename(user: User, *, name: str, request_id: str, now: datetime) -> None:
    """Give oneself another name."""
    before = user.name
    if name == before:
        return
    user.name = name
    user.save(update_fields=["name"])
    note("account.rename", user=user, request_id=request_id, now=now, before=before, after=name)
