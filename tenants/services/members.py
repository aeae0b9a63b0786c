"""Memberships: adding members, changing roles, removing members.

The last owner cannot be removed; a removal takes effect at once.
"""

from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models import F

from tenants.domain.roles import ALLOWED, Role, RoleGrants
from tenants.models import Member, Project, Tenant, User
from tenants.services import audit, membership_offers, new_tenant_limits, tenants, tokens
from tenants.services.actors import Actor
from tenants.services.authentication import require_scopes
from tenants.services.errors import NotAllowed, ProblemError, StaleVersion


class LastOwner(ProblemError):
    code, title = "last-owner", "A tenant keeps at least one owner"


class AlreadyMember(ProblemError):
    code, title = "already-member", "This person is already a member"


def node_path(project: Project | None) -> list[str]:
    """Return the path of a project; the tenant as a whole is the empty path."""
    return project.path if project else []


def require_may_give(grants: RoleGrants, role: Role, project: Project | None) -> None:
    """Refuse to grant or revoke a role that exceeds the caller's own."""
    if not grants.may_give(role, node_path(project)):
        require_scopes(sorted({"members.write", *ALLOWED[role]}), grants)
        raise NotAllowed(
            f"To grant or remove the role {role.value} {'there' if project else 'on the whole tenant'}, "
            "you need all of its permissions.",
            fix="Ask an owner.",
        )


@transaction.atomic
def add(*, tenant: Tenant, user: User, role: Role, project: Project | None, actor: Actor, now: datetime) -> Member:
    """Add a member to the tenant, or to a project and everything below it."""
    try:
        with transaction.atomic():
            member = Member.objects.create(tenant=tenant, user=user, role=role, project=project, created_at=now)
    except IntegrityError:
        raise AlreadyMember(f"{user.email} already has a role there.", fix="Change that role instead.") from None
    if role == Role.OWNER and project is None:
        new_tenant_limits.require_may_own(tenant, user)
    _record("member.add", member, actor=actor, now=now, role=role.value)
    return member


@transaction.atomic
def change_role(member: Member, *, role: Role, grants: RoleGrants, actor: Actor, now: datetime) -> Member:
    """Change a member's role on the same node.

    Open invitations that the member may no longer give are revoked.
    """
    before = Role(member.role)
    if role == before:
        return member
    require_may_give(grants, before, member.project)
    require_may_give(grants, role, member.project)
    _require_other_owner(member)
    moved = Member.objects.filter(pk=member.pk, version=member.version).update(role=role, version=F("version") + 1)
    if not moved:
        raise StaleVersion("The membership was changed in the meantime.", fix="Reload it, then change it.")
    member.role, member.version = role.value, member.version + 1
    if role == Role.OWNER and member.project_id is None:
        new_tenant_limits.require_may_own(member.tenant, member.user)
    _record("member.role", member, actor=actor, now=now, before=before.value, after=role.value)
    membership_offers.revoke_excessive(tenant=member.tenant, user_id=member.user_id, actor=actor, now=now)
    return member


@transaction.atomic
def remove(member: Member, *, grants: RoleGrants, actor: Actor, now: datetime, with_machines: bool = False) -> None:
    """Remove a membership and the open invitations that depended on it.

    With a person's last membership their tokens are revoked too. Tokens that they created for service accounts
    stay valid, since other people's work depends on them, unless `with_machines` is given.
    """
    if member.user_id != actor.id:  # anybody may leave
        require_may_give(grants, Role(member.role), member.project)
    _require_other_owner(member)
    _record("member.remove", member, actor=actor, now=now, role=member.role)
    tenant, user_id = member.tenant, member.user_id
    member.delete()
    membership_offers.revoke_excessive(tenant=tenant, user_id=user_id, actor=actor, now=now)
    if not Member.objects.filter(tenant=tenant, user=user_id).exists():
        tokens.revoke_all_of(tenant=tenant, user_id=user_id, actor=actor, now=now)
    if with_machines:
        tokens.revoke_tokens_known_to(tenant=tenant, user_id=user_id, grants=grants, actor=actor, now=now)


def _require_other_owner(member: Member) -> None:
    """Refuse what would leave the tenant without an owner, even if two leave at once."""
    if member.role != Role.OWNER or member.project_id is not None:
        return
    tenants.lock(member.tenant)
    others = Member.objects.filter(tenant=member.tenant_id, project=None, role=Role.OWNER)
    if not others.exclude(pk=member.pk).exists():
        raise LastOwner(f"{member.user.email} is the only owner.", fix="Make another member an owner first.")


def _record(action: str, member: Member, *, actor: Actor, now: datetime, **detail: object) -> None:
    audit.record(action, member, member.user.email, actor=actor, now=now, project=member.project_id or "", **detail)
