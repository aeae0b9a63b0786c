"""Memberships: whose role reaches where. The last owner stays; who leaves is gone at once."""

from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models import F

from tenants.domain.roles import Grants, Role
from tenants.models import Member, Project, Tenant, User
from tenants.services import audit, offers, tenants, tokens
from tenants.services.actors import Actor
from tenants.services.refusals import NotAllowed, Refused, Stale


class LastOwner(Refused):
    code, title = "last-owner", "A tenant keeps at least one owner"


class AlreadyMember(Refused):
    code, title = "already-member", "This person is already a member there"


def node(project: Project | None) -> list[str]:
    """Return the path of a node; the tenant as a whole is the empty path."""
    return project.path if project else []


def must_give(grants: Grants, role: Role, project: Project | None) -> None:
    """Refuse to give or take a role that is more than one has oneself."""
    if not grants.may_give(role, node(project)):
        raise NotAllowed(
            f"To give or take the role {role.value} {'there' if project else 'on the whole tenant'}, "
            "one must be allowed all that it allows.",
            fix="Ask an owner.",
        )


@transaction.atomic
def add(
    *, tenant: Tenant, user: User, role: Role, project: Project | None, actor: Actor, now: datetime
) -> Member:
    """Make somebody a member of the tenant or of a project and all below it."""
    try:
        with transaction.atomic():
            member = Member.objects.create(
                tenant=tenant, user=user, role=role, project=project, created_at=now
            )
    except IntegrityError:
        raise AlreadyMember(
            f"{user.email} has a role there already.", fix="Change that role instead."
        ) from None
    _record("member.add", member, actor=actor, now=now, role=role.value)
    return member


@transaction.atomic
def change_role(member: Member, *, role: Role, grants: Grants, actor: Actor, now: datetime) -> Member:
    """Give a member another role on the same node; what they offered and may no longer give is taken back."""
    before = Role(member.role)
    if role == before:
        return member
    must_give(grants, before, member.project)
    must_give(grants, role, member.project)
    _keep_an_owner(member)
    moved = Member.objects.filter(pk=member.pk, version=member.version).update(
        role=role, version=F("version") + 1
    )
    if not moved:
        raise Stale("The membership was changed in the meantime.", fix="Read it again, then change it.")
    member.role, member.version = role.value, member.version + 1
    _record("member.role", member, actor=actor, now=now, before=before.value, after=role.value)
    offers.revoke_beyond(tenant=member.tenant, user_id=member.user_id, actor=actor, now=now)
    return member


@transaction.atomic
def remove(
    member: Member, *, grants: Grants, actor: Actor, now: datetime, with_machines: bool = False
) -> None:
    """End a membership, and with it the offers that stood on it; with their last one, the person's tokens die too.

    Tokens that they made for service accounts go on, for others' work hangs on them, unless one says `with_machines`.
    """
    if member.user_id != actor.id:  # anybody may leave
        must_give(grants, Role(member.role), member.project)
    _keep_an_owner(member)
    _record("member.remove", member, actor=actor, now=now, role=member.role)
    tenant, user_id = member.tenant, member.user_id
    member.delete()
    offers.revoke_beyond(tenant=tenant, user_id=user_id, actor=actor, now=now)
    if not Member.objects.filter(tenant=tenant, user=user_id).exists():
        tokens.revoke_all_of(tenant=tenant, user_id=user_id, actor=actor, now=now)
    if with_machines:
        tokens.revoke_left_by(tenant=tenant, user_id=user_id, grants=grants, actor=actor, now=now)


def _keep_an_owner(member: Member) -> None:
    """Refuse what would leave the tenant without an owner, also when two owners go at once."""
    if member.role != Role.OWNER or member.project_id is not None:
        return
    tenants.lock(member.tenant)
    others = Member.objects.filter(tenant=member.tenant_id, project=None, role=Role.OWNER)
    if not others.exclude(pk=member.pk).exists():
        raise LastOwner(f"{member.user.email} is the only owner.", fix="Make somebody else owner first.")


def _record(action: str, member: Member, *, actor: Actor, now: datetime, **detail: object) -> None:
    audit.record(
        action,
        actor=actor,
        now=now,
        tenant_id=member.tenant_id,
        subject_id=member.pk,
        subject_label=member.user.email,
        project=member.project_id or "",
        **detail,
    )
