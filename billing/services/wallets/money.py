"""What money and credit a tenant has for what it has not paid yet, and what of that is spoken for."""

from dataclasses import dataclass
from datetime import datetime

from billing.domain.holding import exact_of
from billing.domain.money import exponent_of, to_minor_up
from billing.models import PaymentTerms, TenantTerms, Wallet
from billing.services.statements import statement
from ports import database
from tenants.models import Tenant

LOCKED = "SELECT id, currency, taken_num FROM billing_wallet WHERE tenant_id = %s FOR NO KEY UPDATE"


@dataclass(frozen=True, slots=True)
class Funds:
    """Minor units: paid money, credit that may be counted on, and what of both is taken, rounded up."""

    paid: int
    credit: int
    taken: int
    currency: str

    @property
    def available(self) -> int:
        return max(self.paid + self.credit - self.taken, 0)


def is_prepaid(tenant_id: str) -> bool:
    return TenantTerms.objects.filter(tenant=tenant_id, payment=PaymentTerms.PREPAID).exists()


def locked(tenant: Tenant) -> Wallet:
    """Return the tenant's wallet, kept until this transaction ends; locked after all budgets' months."""
    found = database.rows(LOCKED, [tenant.pk])
    if not found:
        Wallet.objects.bulk_create([Wallet(tenant=tenant, currency=tenant.currency)], ignore_conflicts=True)
        found = database.rows(LOCKED, [tenant.pk])
    ((pk, currency, taken_num),) = found
    return Wallet(pk=pk, tenant=tenant, currency=currency, taken_num=taken_num)


def room(wallet: Wallet, *, until: datetime) -> int:
    """Return what may still be taken of a locked wallet for use up to a moment; exact, below nothing if overdrawn."""
    paid, credit = _has(wallet.tenant_id, wallet.currency, until)
    return exact_of(paid + credit, wallet.currency) - int(wallet.taken_num)


def funds(tenant: Tenant, *, now: datetime) -> Funds:
    """Return what a tenant has, as its pages say; two queries."""
    wallet = Wallet.objects.filter(tenant=tenant).first()
    places = exponent_of(tenant.currency)
    paid, credit = _has(tenant.pk, tenant.currency, now)
    return Funds(
        paid=paid,
        credit=credit,
        taken=to_minor_up(int(wallet.taken_num), places) if wallet else 0,
        currency=tenant.currency,
    )


def _has(tenant_id: str, currency: str, until: datetime) -> tuple[int, int]:
    """Return paid money and the credit that counts for something used up to a moment; minor units."""
    asked = {"tenant": tenant_id, "currency": currency, "until": until}
    ((paid, credit),) = database.rows(statement("wallet_has"), asked)
    return paid, credit
