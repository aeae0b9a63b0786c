"""Wallet balance: money and credit of a tenant, and what is reserved."""

from dataclasses import dataclass
from datetime import datetime

from billing.domain.lease_holds import exact_from_minor
from billing.domain.money import exponent_of, to_minor_up
from billing.models import AccountTerms, PaymentTerms, Wallet
from ports.postgres import sql_statements
from ports.postgres.sql_statements import load_sql
from tenants.models import Tenant

LOCK_WALLET_SQL = "SELECT id, currency, taken_num FROM billing_wallet WHERE tenant_id = %s FOR NO KEY UPDATE"


@dataclass(frozen=True, slots=True)
class WalletFunds:
    """Money, usable credit and reserved amount, in minor units.

    The reserved amount is rounded up.
    """

    paid: int
    credit: int
    taken: int
    currency: str

    @property
    def available(self) -> int:
        return max(self.paid + self.credit - self.taken, 0)


def is_prepaid(tenant_id: str) -> bool:
    return AccountTerms.objects.filter(tenant=tenant_id, payment=PaymentTerms.PREPAID).exists()


def lock_wallet(tenant: Tenant) -> Wallet:
    """Return the tenant's wallet, locked until this transaction ends.

    It is locked after all months of budgets.
    """
    found = sql_statements.fetch_rows(LOCK_WALLET_SQL, [tenant.pk])
    if not found:
        Wallet.objects.bulk_create([Wallet(tenant=tenant, currency=tenant.currency)], ignore_conflicts=True)
        found = sql_statements.fetch_rows(LOCK_WALLET_SQL, [tenant.pk])
    ((pk, currency, taken_num),) = found
    return Wallet(pk=pk, tenant=tenant, currency=currency, taken_num=taken_num)


def wallet_room(wallet: Wallet, *, until: datetime) -> int:
    """Return what may still be reserved in a locked wallet for use until a moment.

    Exact, and negative if overdrawn.
    """
    paid, credit = _paid_and_credit(wallet.tenant_id, wallet.currency, until)
    return exact_from_minor(paid + credit, wallet.currency) - int(wallet.taken_num)


def wallet_funds(tenant: Tenant, *, now: datetime) -> WalletFunds:
    """Return a tenant's funds, as its pages show them; two queries."""
    wallet = Wallet.objects.filter(tenant=tenant).first()
    places = exponent_of(tenant.currency)
    paid, credit = _paid_and_credit(tenant.pk, tenant.currency, now)
    return WalletFunds(
        paid=paid,
        credit=credit,
        taken=to_minor_up(int(wallet.taken_num), places) if wallet else 0,
        currency=tenant.currency,
    )


def _paid_and_credit(tenant_id: str, currency: str, until: datetime) -> tuple[int, int]:
    """Return paid money, and credit usable until a moment; minor units."""
    values = {"tenant": tenant_id, "currency": currency, "until": until}
    ((paid, credit),) = sql_statements.fetch_rows(load_sql("billing/funds/wallet_balance"), values)
    return paid, credit
