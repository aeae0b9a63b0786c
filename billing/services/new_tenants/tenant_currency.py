"""Change of a tenant's currency, until something is paid, granted or charged in it."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from billing.domain.money import EXPONENTS
from billing.models import (
    ApprovalLimit,
    ApprovalRequest,
    ApprovalState,
    AutoTopUp,
    Budget,
    BudgetMonth,
    Commitment,
    Discount,
    Grant,
    LedgerTransfer,
    Minimum,
    PaymentStatus,
    RatedCharge,
    TokenCap,
    TopUp,
    Wallet,
)
from billing.services.funds.budgets.budget_settings import lock_tenant_funds
from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease
from tenants.models import Quota, QuotaKind, Tenant
from tenants.services import tenants
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue
from tenants.services.rls import tenant_scope
from tenants.services.tenants import CurrencyFixed

ANOTHER_TENANT = "Create another tenant for the other currency: what is booked stays in its currency."
# What stands in the way, in words for one and for several, and what to do about it; the first counts most.
OBSTACLES: tuple[tuple[Callable[[str], QuerySet[Any]], str, str, str], ...] = (
    (lambda pk: RatedCharge.objects.filter(tenant_id=pk), "charge", "charges", ANOTHER_TENANT),
    (lambda pk: LedgerTransfer.objects.filter(tenant_id=pk), "booking", "bookings", ANOTHER_TENANT),
    (
        lambda pk: Grant.objects.filter(tenant_id=pk),
        "credit",
        "credits",
        "Credit stays in its currency, also once it is taken back. " + ANOTHER_TENANT,
    ),
    (
        lambda pk: TopUp.objects.filter(tenant_id=pk).exclude(status=PaymentStatus.DECLINED),
        "top-up",
        "top-ups",
        "Wait until a top-up in progress is declined; paid money stays in its currency. " + ANOTHER_TENANT,
    ),
    (
        lambda pk: Lease.objects.filter(tenant_id=pk).exclude(state=LeaseState.RELEASED),
        "lease",
        "leases",
        "Release the leases first; that helps as long as none has been active.",
    ),
    (lambda pk: Commitment.objects.filter(tenant_id=pk), "commitment", "commitments", ANOTHER_TENANT),
    (lambda pk: Minimum.objects.filter(tenant_id=pk), "minimum spend", "minimum spends", ANOTHER_TENANT),
    (
        lambda pk: Discount.objects.filter(tenant_id=pk).exclude(currency=""),
        "discount of an amount",
        "discounts of an amount",
        ANOTHER_TENANT,
    ),
    (
        lambda pk: BudgetMonth.objects.filter(tenant_id=pk).exclude(taken_num=0),
        "used budget",
        "used budgets",
        "Release the leases that hold them, then try again.",
    ),
    (
        lambda pk: AutoTopUp.objects.filter(tenant_id=pk),
        "automatic top-up",
        "automatic top-ups",
        "Switch the automatic top-up off first.",
    ),
    (
        lambda pk: TokenCap.objects.filter(tenant_id=pk),
        "token with a spend cap",
        "tokens with a spend cap",
        ANOTHER_TENANT,
    ),
    (
        lambda pk: ApprovalLimit.objects.filter(tenant_id=pk).exclude(max_minor=None),
        "limit of what a launch may cost",
        "limits of what a launch may cost",
        "Remove the limit first.",
    ),
    (
        lambda pk: ApprovalRequest.objects.filter(tenant_id=pk, state=ApprovalState.WAITING),
        "launch that waits for approval",
        "launches that wait for approval",
        "Approve or withdraw the waiting launches first.",
    ),
    (
        lambda pk: Quota.objects.filter(tenant_id=pk, kind=QuotaKind.BURN),
        "quota of what is spent per hour",
        "quotas of what is spent per hour",
        "Lift these quotas first.",
    ),
)


@transaction.atomic
def set_currency(tenant: Tenant, *, currency: str, actor: Actor, now: datetime) -> Tenant:
    """Change a tenant's currency; unused budgets keep their numbers in the new one.

    Raises CurrencyFixed, which lists everything in the present currency and what to do about it.
    """
    if currency not in EXPONENTS:
        raise InvalidValue("currency", f"{currency[:10]!r} is not a currency.", fix="Use a code such as EUR.")
    if currency == tenant.currency:
        return tenant
    before = tenant.currency
    with tenant_scope(tenant.pk):
        lock_tenant_funds(tenant.pk)
        _check_nothing_in_currency(tenant)
        changed = tenants.change(tenant, actor=actor, now=now, currency=currency)
        Wallet.objects.filter(tenant=tenant).update(currency=currency)
        for budget in Budget.objects.select_for_update().filter(tenant=tenant):
            budget.limit_minor = budget.limit_minor * 10 ** EXPONENTS[currency] // 10 ** EXPONENTS[before]
            budget.currency, budget.version = currency, budget.version + 1
            budget.save(update_fields=["limit_minor", "currency", "version"])
    return changed


def _check_nothing_in_currency(tenant: Tenant) -> None:
    found = [
        (f"{count} {one if count == 1 else several}", fix)
        for rows, one, several, fix in OBSTACLES
        if (count := rows(tenant.pk).count())
    ]
    if found:
        names = ", ".join(name for name, _ in found)
        raise CurrencyFixed(f"{tenant.name} already has {names} in {tenant.currency}.", fix=found[0][1])
