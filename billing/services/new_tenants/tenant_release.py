"""Release of new tenants by operators: their limits end, and their payment terms are set."""

from datetime import datetime

from django.db import transaction

from billing.models import AccountStatus, PaymentTerms
from billing.services.funds.accounts import account_terms
from broker.services.leases.lifecycle import eviction
from tenants.models import Tenant
from tenants.services import new_tenants
from tenants.services.actors import Actor
from tenants.services.errors import ProblemError
from tenants.services.rls import tenant_scope


class AlreadyReleased(ProblemError):
    code, status, title = "already-released", 409, "This tenant is released"


@transaction.atomic
def release_tenant(
    tenant: Tenant, *, why: str, actor: Actor, now: datetime, payment: str = PaymentTerms.INVOICE
) -> Tenant:
    """Release a new tenant for a reason, or raise AlreadyReleased; its other account status stays."""
    reason = eviction.clean_reason(why)
    with tenant_scope(tenant.pk):
        if not new_tenants.release_tenant(tenant, why=reason, actor=actor, now=now):
            raise AlreadyReleased(f"{tenant.name} has no limits of new tenants.", fix="Reload the page.")
        status = account_terms.terms_of(tenant).account_status or AccountStatus.GOOD
        account_terms.set_account_terms(
            tenant, payment=payment, account_status=status, why=reason, actor=actor, now=now
        )
    return tenant
