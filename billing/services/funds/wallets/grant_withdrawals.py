"""Take back credit of a tenant, except what leases of a prepaid tenant hold."""

from datetime import datetime

from django.db import transaction

from billing.models import Grant
from billing.services.funds.grants import grant_revocation
from billing.services.funds.wallets import wallet_balances
from tenants.models import Tenant
from tenants.services.actors import Actor
from tenants.services.rls import tenant_scope


@transaction.atomic
def take_back_grant(grant: Grant, *, why: str, actor: Actor, now: datetime) -> Grant:
    """Take back the unused rest of a grant.

    Raises NotRevocable if leases hold a part of it.
    """
    with tenant_scope(grant.tenant_id):
        tenant = Tenant.objects.get(pk=grant.tenant_id)
        wallet_balances.lock_wallet(tenant)
        prepaid = wallet_balances.is_prepaid(tenant.pk)
        available = wallet_balances.wallet_funds(tenant, now=now).available if prepaid else None
        return grant_revocation.revoke_grant(grant, available=available, why=why, actor=actor, now=now)
