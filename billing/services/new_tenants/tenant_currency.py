"""Change of a tenant's currency, until something is paid, granted or charged in it."""

from datetime import datetime

from django.db import transaction

from billing.domain.money import EXPONENTS
from billing.models import (
    ApprovalLimit,
    ApprovalRequest,
    ApprovalState,
    AutoTopUp,
    Budget,
    Grant,
    LedgerTransfer,
    TokenCap,
    TopUp,
    Wallet,
)
from tenants.models import Quota, QuotaKind, Tenant
from tenants.services import tenants
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue
from tenants.services.rls import tenant_scope
from tenants.services.tenants import CurrencyFixed

IN_ITS_CURRENCY = (
    (TopUp.objects.all(), "payments"),
    (AutoTopUp.objects.all(), "an automatic top-up"),
    (Grant.objects.all(), "credit"),
    (Budget.objects.all(), "budgets"),
    (TokenCap.objects.all(), "tokens with a spend cap"),
    (ApprovalLimit.objects.exclude(max_minor=None), "limits of what a launch may cost"),
    (ApprovalRequest.objects.filter(state=ApprovalState.WAITING), "launches that wait for approval"),
    (Quota.objects.filter(kind=QuotaKind.BURN), "quotas of what is spent per hour"),
    (LedgerTransfer.objects.all(), "bookings"),
)


@transaction.atomic
def set_currency(tenant: Tenant, *, currency: str, actor: Actor, now: datetime) -> Tenant:
    """Change a tenant's currency, or raise CurrencyFixed if there is something in the present one."""
    if currency not in EXPONENTS:
        raise InvalidValue("currency", f"{currency[:10]!r} is not a currency.", fix="Use a code such as EUR.")
    if currency == tenant.currency:
        return tenant
    with tenant_scope(tenant.pk):
        for rows, name in IN_ITS_CURRENCY:
            if rows.filter(tenant_id=tenant.pk).exists():
                raise CurrencyFixed(
                    f"{tenant.name} already has {name} in {tenant.currency}.",
                    fix="Remove them if that is possible; else create another tenant for the other currency.",
                )
        changed = tenants.change(tenant, actor=actor, now=now, currency=currency)
        Wallet.objects.filter(tenant=tenant).update(currency=currency)
    return changed
