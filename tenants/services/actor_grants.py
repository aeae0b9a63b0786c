"""Present roles of an actor that acts later, when it is not signed in."""

from datetime import datetime

from tenants.domain.roles import Role, RoleGrant, RoleGrants
from tenants.models import ApiToken, Member, ServiceAccount
from tenants.services.actors import Actor


def current_grants(actor: Actor, *, tenant_id: str, now: datetime) -> RoleGrants:
    """Return what a user or service account may do now.

    Runs in the tenant's scope.
    """
    members = Member.objects.filter(tenant=tenant_id, user=actor.id, user__is_active=True)
    accounts = ServiceAccount.objects.filter(tenant=tenant_id, pk=actor.id, closed_at=None)
    columns = ("role", "project__path")
    held = [*members.values_list(*columns), *accounts.values_list(*columns)]
    grants = tuple(RoleGrant(Role(role), tuple(path or ())) for role, path in held)
    if not actor.token:
        return RoleGrants(grants)
    token = (
        ApiToken.objects.select_related("project").filter(pk=actor.token, revoked_at=None, expires_at__gt=now).first()
    )
    if token is None:
        return RoleGrants()
    return RoleGrants(grants, frozenset(token.scopes), tuple(token.project.path) if token.project else ())
