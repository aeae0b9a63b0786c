"""Wallet balance: money and credit of a tenant, and what is reserved."""

from dataclasses import dataclass
from datetime import datetime

from billing.domain.lease_holds import exact_from_minor
from billing.domain.money import exponent_of, to_minor_up
from billing.domain.periods import month_of
from billing.models import AccountTerms, BillingPeriod, PaymentTerms, Wallet
from billing.models.periods import OPEN
from billing.services.rating import spend
from ports.postgres import sql_statements
from ports.postgres.sql_statements import load_sql
from tenants.models import Tenant
from tenants.services.rls import login_role_scope, tenant_scope

LOCK_WALLET_SQL = "SELECT id, currency, taken_num FROM billing_wallet WHERE tenant_id = %s FOR NO KEY UPDATE"


@dataclass(frozen=True, slots=True)
class WalletFunds:
    """Money, usable credit, and what is taken of them, in minor units.

    Of a prepaid tenant that is what it used and reserved, rounded up; of another what it used and is not
    invoiced yet, before tax.
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
    """Return a tenant's funds, as its pages show them."""
    wallet = Wallet.objects.filter(tenant=tenant).first()
    places = exponent_of(tenant.currency)
    reserved = to_minor_up(int(wallet.taken_num), places) if wallet else 0
    paid, credit = _paid_and_credit(tenant.pk, tenant.currency, now)
    return WalletFunds(
        paid=paid,
        credit=credit,
        taken=reserved if reserved or is_prepaid(tenant.pk) else uninvoiced_use(tenant, now=now),
        currency=tenant.currency,
    )


def uninvoiced_use(tenant: Tenant, *, now: datetime) -> int:
    """Return what a tenant used in months without a final invoice, in minor units."""
    with login_role_scope(), tenant_scope(tenant.pk):  # operators see their pages in a wider scope
        rows = BillingPeriod.objects.filter(tenant=tenant, status=OPEN, span__startswith__lt=now)
        months = dict(rows.values_list("span__startswith", "span__endswith"))
        this = month_of(tenant.time_zone, now)  # its row is made when something is charged
        months.setdefault(this.start, this.end)
        return sum(spend.spend_between(tenant, start, min(end, now)) for start, end in months.items())


def _paid_and_credit(tenant_id: str, currency: str, until: datetime) -> tuple[int, int]:
    """Return paid money, and credit usable until a moment; minor units."""
    values = {"tenant": tenant_id, "currency": currency, "until": until}
    ((paid, credit),) = sql_statements.fetch_rows(load_sql("billing/funds/wallet_balance"), values)
    return paid, credit
