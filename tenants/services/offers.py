"""Open offers of membership: taken back by a person, or because whoever made one may no longer make it."""

from datetime import datetime

from django.db import transaction

from tenants.domain.roles import Grant, Grants, Role
from tenants.models import Invitation, Member, Tenant
from tenants.services import audit
from tenants.services.actors import Actor


@transaction.atomic
def revoke(invitation: Invitation, *, actor: Actor, now: datetime) -> None:
    """Take an offer back; one that was accepted stays accepted."""
    if Invitation.objects.filter(pk=invitation.pk, accepted_at=None, revoked_at=None).update(revoked_at=now):
        record("invitation.revoke", invitation, actor=actor, now=now)


def revoke_beyond(*, tenant: Tenant, user_id: str, actor: Actor, now: datetime) -> None:
    """Take back what somebody offered and may no longer give: they were shown the link, and could use it themselves."""
    theirs = Member.objects.filter(tenant=tenant, user=user_id).select_related("project")
    left = Grants(tuple(Grant(Role(m.role), tuple(m.project.path if m.project else ())) for m in theirs))
    offers = Invitation.objects.filter(tenant=tenant, invited_by=user_id, accepted_at=None, revoked_at=None)
    for offer in offers.filter(expires_at__gt=now).select_related("project"):
        if not left.may_give(Role(offer.role), offer.project.path if offer.project else ()):
            revoke(offer, actor=actor, now=now)


def record(action: str, invitation: Invitation, *, actor: Actor, now: datetime, **detail: object) -> None:
    audit.record(
        action,
        actor=actor,
        now=now,
        tenant_id=invitation.tenant_id,
        subject_id=invitation.pk,
        subject_label=invitation.email,
        project=invitation.project_id or "",
        **detail,
    )
