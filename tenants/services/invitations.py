"""Invitations: a secret link that makes its bearer a member, once."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from ports import ids, mail
from tenants.domain.credentials import digest
from tenants.domain.roles import IN_WORDS, Grants, Role
from tenants.models import Invitation, Member, Project, Tenant, User
from tenants.services import members
from tenants.services.actors import Actor
from tenants.services.offers import record
from tenants.services.offers import revoke as revoke
from tenants.services.permissions import not_suspended
from tenants.services.refusals import Missing
from tenants.services.walls import as_door, enter_tenant

LIFE = timedelta(days=7)
SECRET_LENGTH = 40
LETTER = """{who} offers you the role of {role} in {where}.
Whoever has it {may}.

{link}

The link works once, until {until}. If you expected nothing of the kind, do nothing.
"""


@dataclass(frozen=True)
class Offer:
    """What somebody who holds the link may know before they accept."""

    id: str
    tenant_id: str
    tenant_name: str
    project_name: str
    role: Role
    email: str


@transaction.atomic
def invite(
    *,
    tenant: Tenant,
    email: str,
    role: Role,
    project: Project | None,
    grants: Grants,
    actor: Actor,
    now: datetime,
) -> tuple[Invitation, str]:
    """Offer a role by mail address; the secret of the link is returned once and kept nowhere."""
    members.must_give(grants, role, project)
    secret = ids.secret(SECRET_LENGTH)
    invitation = Invitation.objects.create(
        tenant=tenant,
        project=project,
        email=email.lower(),
        role=role,
        digest=digest(secret),
        invited_by_id=actor.id if actor.kind == "user" else None,
        created_at=now,
        expires_at=now + LIFE,
    )
    record("invitation.create", invitation, actor=actor, now=now, role=role.value)
    mail.send(
        to=invitation.email,
        subject=f"{tenant.name} invites you to gpubroker",
        text=LETTER.format(
            who=actor.label,
            role=role.value,
            where=f"{project.name} at {tenant.name}" if project else tenant.name,
            may=IN_WORDS[role],
            link=f"{settings.PUBLIC_URL}/join/{secret}/",
            until=f"{invitation.expires_at:%d %B %Y, %H:%M} UTC",
        ),
    )
    return invitation, secret


def look(secret: str, *, now: datetime) -> Offer:
    """Return what a link offers; unknown, used, revoked and expired links all look the same."""
    with as_door():
        row = (
            Invitation.objects.filter(
                digest=digest(secret), accepted_at=None, revoked_at=None, expires_at__gt=now
            )
            .select_related("tenant", "project")
            .first()
        )
    if row is None:
        raise Missing(
            "This invitation is unknown, was used, taken back, or has expired.",
            fix="Ask whoever invited you for a new link.",
        )
    project = row.project.name if row.project else ""
    return Offer(row.pk, row.tenant_id, row.tenant.name, project, Role(row.role), row.email)


@transaction.atomic
def accept(secret: str, *, user: User, actor: Actor, now: datetime) -> Member:
    """Make the signed-in person a member, and use the link up; the transaction is then in that tenant."""
    offer = look(secret, now=now)
    enter_tenant(offer.tenant_id)
    # Locked and read again: of two clicks at once, the second finds it used.
    invitation = (
        Invitation.objects.select_for_update(of=("self",))
        .select_related("tenant", "project")
        .get(pk=offer.id)
    )
    if invitation.accepted_at is not None or invitation.revoked_at is not None:
        raise Missing("This invitation was used meanwhile.", fix="Ask for a new link.")
    not_suspended(invitation.tenant)
    member = members.add(
        tenant=invitation.tenant,
        user=user,
        role=offer.role,
        project=invitation.project,
        actor=actor,
        now=now,
    )
    Invitation.objects.filter(pk=invitation.pk).update(accepted_at=now)
    record("invitation.accept", invitation, actor=actor, now=now, member=member.pk)
    return member
