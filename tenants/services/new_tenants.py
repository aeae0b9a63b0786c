"""New tenants: created by whoever signs up, limited until an operator releases them."""

from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.db.models import F

from tenants.domain.mailboxes import mailbox_of, network_of
from tenants.models import Project, Quota, QuotaKind, Tenant, User
from tenants.services import audit, new_tenant_limits, quotas, tenants
from tenants.services.actors import SYSTEM, Actor
from tenants.services.sign_ups import require_sign_up_open

MILLI_UNIT_HOUR = 3_600_000


@transaction.atomic
def found_tenant(
    *,
    user: User,
    name: str,
    currency: str,
    time_zone: str,
    ip_address: str,
    actor: Actor,
    now: datetime,
) -> Tenant:
    """Create a tenant for a person, with the limits of new tenants.

    Raises SignUpClosed where people create none, and NewTenantLimit. The transaction is scoped to the tenant
    afterwards.
    """
    require_sign_up_open(user.email)
    mailbox, network = user.mailbox or mailbox_of(user.email), network_of(ip_address)
    new_tenant_limits.require_may_found(mailbox, network)
    released = settings.RELEASE_NEW_TENANTS
    tenant, root = tenants.create(
        name=name,
        owner=user,
        time_zone=time_zone,
        currency=currency,
        actor=actor,
        now=now,
        founder=mailbox,
        founder_network="" if released else network,
        released=released,
    )
    if not released:
        for kind, limit in _new_tenant_quotas().items():
            quotas.set_limit(project=root, kind=kind, limit=limit, actor=SYSTEM, now=now)
    return tenant


def release_tenant(tenant: Tenant, *, why: str, actor: Actor, now: datetime) -> bool:
    """Lift the limits of a new tenant; return whether that is a change.

    Quotas that operators have set meanwhile stay. The caller's transaction is scoped to the tenant.
    """
    rows = Tenant.objects.filter(pk=tenant.pk, released_at=None)
    if not rows.update(released_at=now, founder_network="", version=F("version") + 1):
        return False
    tenant.refresh_from_db()
    root = Project.objects.get(tenant=tenant, parent=None)
    untouched = {
        quota.kind: quota
        for quota in Quota.objects.filter(project=root)
        if quota.soft_limit == _new_tenant_quotas().get(QuotaKind(quota.kind))
    }
    if QuotaKind.UNITS in untouched:
        usual = settings.DEFAULT_TENANT_QUOTA_UNITS * 1000
        quotas.set_limit(project=root, kind=QuotaKind.UNITS, limit=usual, actor=actor, now=now)
    if QuotaKind.GPU_SECONDS in untouched:
        quotas.remove(untouched[QuotaKind.GPU_SECONDS], actor=actor, now=now)
    audit.record("tenant.release", tenant, actor=actor, now=now, why=why)
    return True


def _new_tenant_quotas() -> dict[QuotaKind, int]:
    return {
        QuotaKind.UNITS: settings.NEW_TENANT_QUOTA_UNITS * 1000,
        QuotaKind.GPU_SECONDS: settings.NEW_TENANT_UNIT_HOURS * MILLI_UNIT_HOUR,
    }
