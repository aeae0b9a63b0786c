"""Invitations: a secret link that makes its holder a member, once."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from ports import ids, mail
from tenants.domain.credentials import digest
from tenants.domain.roles import ROLE_DESCRIPTIONS, Role, RoleGrants
from tenants.models import Invitation, Member, Project, Tenant, User
from tenants.services import members
from tenants.services.actors import Actor
from tenants.services.authentication import require_not_suspended
from tenants.services.errors import ObjectNotFound
from tenants.services.membership_offers import record_invitation_event
from tenants.services.membership_offers import revoke as revoke
from tenants.services.rls import auth_scope, enter_tenant

VALID_FOR = timedelta(days=7)
SECRET_LENGTH = 40
EMAIL_TEXT = """{who} invited you to {where} with the role {role}.
This role {may}.

{link}

The link works once and expires on {until}. If you did not expect this invitation, ignore this e-mail.
"""


@dataclass(frozen=True)
class InvitationOffer:
    """What the holder of an invitation link may see before accepting."""

    id: str
    tenant_id: str
    tenant_name: str
    project_name: str
    role: Role
    email: str


@transaction.atomic
def invite(
    *, tenant: Tenant, email: str, role: Role, project: Project | None, grants: RoleGrants, actor: Actor, now: datetime
) -> tuple[Invitation, str]:
    """Send an invitation to a role by e-mail.

    The link's secret is returned once and stored only as a hash.
    """
    members.require_may_give(grants, role, project)
    secret = ids.random_token(SECRET_LENGTH)
    invitation = Invitation.objects.create(
        tenant=tenant,
        project=project,
        email=email.lower(),
        role=role,
        digest=digest(secret),
        invited_by_id=actor.id if actor.kind == "user" else None,
        created_at=now,
        expires_at=now + VALID_FOR,
    )
    record_invitation_event("invitation.create", invitation, actor=actor, now=now, role=role.value)
    mail.send_after_commit(
        to=invitation.email,
        subject=f"{tenant.name} invites you to gpubroker",
        text=EMAIL_TEXT.format(
            who=actor.label,
            role=role.value,
            where=f"{project.name} at {tenant.name}" if project else tenant.name,
            may=ROLE_DESCRIPTIONS[role],
            link=f"{settings.PUBLIC_URL}/join/{secret}/",
            until=f"{invitation.expires_at:%d %B %Y, %H:%M} UTC",
        ),
    )
    return invitation, secret


def find_offer(secret: str, *, now: datetime) -> InvitationOffer:
    """Return what an invitation link offers.

    Unknown, used, revoked and expired links raise the same error.
    """
    with auth_scope():
        row = (
            Invitation.objects.filter(digest=digest(secret), accepted_at=None, revoked_at=None, expires_at__gt=now)
            .select_related("tenant", "project")
            .first()
        )
    if row is None:
        raise ObjectNotFound(
            "This invitation is unknown, already used, revoked or expired.",
            fix="Ask the person who invited you for a new link.",
        )
    project = row.project.name if row.project else ""
    return InvitationOffer(row.pk, row.tenant_id, row.tenant.name, project, Role(row.role), row.email)


@transaction.atomic
def accept(secret: str, *, user: User, actor: Actor, now: datetime) -> Member:
    """Make the signed-in user a member and use the invitation up.

    The transaction is scoped to that tenant afterwards.
    """
    offer = find_offer(secret, now=now)
    enter_tenant(offer.tenant_id)
    # Locked and read again: of two concurrent clicks, the second finds it used.
    invitation = Invitation.objects.select_for_update(of=("self",)).select_related("tenant", "project").get(pk=offer.id)
    if invitation.accepted_at is not None or invitation.revoked_at is not None:
        raise ObjectNotFound("This invitation has already been used.", fix="Ask for a new link.")
    require_not_suspended(invitation.tenant)
    member = members.add(
        tenant=invitation.tenant, user=user, role=offer.role, project=invitation.project, actor=actor, now=now
    )
    Invitation.objects.filter(pk=invitation.pk).update(accepted_at=now)
    record_invitation_event("invitation.accept", invitation, actor=actor, now=now, member=member.pk)
    return member
