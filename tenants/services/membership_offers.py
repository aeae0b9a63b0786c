"""Revoking open invitations: by a person, or when the inviter may no longer invite."""

from datetime import datetime

from django.db import transaction

from tenants.domain.roles import Role, RoleGrant, RoleGrants
from tenants.models import Invitation, Member, Tenant
from tenants.services import audit
from tenants.services.actors import Actor


@transaction.atomic
def revoke(invitation: Invitation, *, actor: Actor, now: datetime) -> None:
    """Revoke an invitation; an accepted one stays accepted."""
    if Invitation.objects.filter(pk=invitation.pk, accepted_at=None, revoked_at=None).update(revoked_at=now):
        record_invitation_event("invitation.revoke", invitation, actor=actor, now=now)


def revoke_excessive(*, tenant: Tenant, user_id: str, actor: Actor, now: datetime) -> None:
    """Revoke a user's open invitations to roles they may no longer give.

    They have seen the links and could use them themselves.
    """
    theirs = Member.objects.filter(tenant=tenant, user=user_id).select_related("project")
    left = RoleGrants(tuple(RoleGrant(Role(m.role), tuple(m.project.path if m.project else ())) for m in theirs))
    offers = Invitation.objects.filter(tenant=tenant, invited_by=user_id, accepted_at=None, revoked_at=None)
    for offer in offers.filter(expires_at__gt=now).select_related("project"):
        if not left.may_give(Role(offer.role), offer.project.path if offer.project else ()):
            revoke(offer, actor=actor, now=now)


def record_invitation_event(
    action: str, invitation: Invitation, *, actor: Actor, now: datetime, **detail: object
) -> None:
    audit.record(action, invitation, actor=actor, now=now, project=invitation.project_id or "", **detail)
