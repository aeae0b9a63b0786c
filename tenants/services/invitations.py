"""Invitations: a secret link that makes its holder a member, once."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from allauth.account.models import EmailAddress
from django.conf import settings
from django.db import transaction

from ports import ids, mail
from tenants.domain.credentials import digest
from tenants.domain.roles import PRIVILEGED_ROLES, ROLE_DESCRIPTIONS, Role, RoleGrants
from tenants.models import Invitation, Member, Project, Tenant, User
from tenants.services import members
from tenants.services.actors import Actor
from tenants.services.authentication import require_not_suspended
from tenants.services.errors import ObjectNotFound, ProblemError
from tenants.services.membership_offers import record_invitation_event
from tenants.services.membership_offers import revoke as revoke
from tenants.services.rls import auth_scope, enter_tenant

VALID_FOR = timedelta(days=7)
SECRET_LENGTH = 40
EMAIL_TEXT = """{who} invited you to {where} with the role {role}.
This role {may}.

{link}

The link works once and expires on {until}. {who_can_use} If you did not expect this invitation, ignore this e-mail.
"""
ONLY_INVITED = "Only an account with the verified address {email} can accept it."
ANYBODY = "Whoever opens it first can accept it: do not forward it."
JOINED_TEXT = """{member} joined {where} with the role {role}, by an invitation to {invited}.

If you did not expect this, remove the member: {link}
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

    @property
    def needs_invited_address(self) -> bool:
        """Return whether only the invited address may accept it."""
        return self.role in PRIVILEGED_ROLES


class WrongAddress(ProblemError):
    """The invitation is for another address than those that the user has verified."""

    status, code, title = 403, "wrong-address", "This invitation is for another address"


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
            who_can_use=ONLY_INVITED.format(email=invitation.email) if role in PRIVILEGED_ROLES else ANYBODY,
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
    """Make the signed-in user a member, use the invitation up, and tell the tenant's owners.

    Raises WrongAddress if only another, verified address may accept it. The transaction is scoped to that tenant
    afterwards.
    """
    offer = find_offer(secret, now=now)
    if offer.needs_invited_address and not has_verified_address(user, offer.email):
        raise WrongAddress(
            f"The role {offer.role} is given only to {offer.email}, and your account has not verified that address.",
            fix=f"Sign in with {offer.email}, or ask for an invitation to {user.email}.",
        )
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
    _tell_owners(invitation, user)
    return member


def has_verified_address(user: User, address: str) -> bool:
    """Return whether a user has verified an e-mail address."""
    return bool(EmailAddress.objects.filter(user=user, verified=True, email__iexact=address).exists())


def _tell_owners(invitation: Invitation, joined: User) -> None:
    """Send the tenant's owners an e-mail about who came in."""
    tenant, project = invitation.tenant, invitation.project
    owners = Member.objects.filter(tenant=tenant, project=None, role=Role.OWNER, user__is_active=True)
    for address in owners.exclude(user=joined).order_by("user__email").values_list("user__email", flat=True):
        mail.send_after_commit(
            to=address,
            subject=f"{joined.email} joined {tenant.name}",
            text=JOINED_TEXT.format(
                member=joined.email,
                where=f"{project.name} at {tenant.name}" if project else tenant.name,
                role=invitation.role,
                invited=invitation.email,
                link=f"{settings.PUBLIC_URL}/team/",
            ),
        )
