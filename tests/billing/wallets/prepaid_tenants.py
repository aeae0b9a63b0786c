"""Test helpers: make tenants prepaid, read funds and holds, close months."""

from datetime import datetime

from billing.models import Grant, Hold, Invoice, Wallet, WalletPart
from billing.services.funds.accounts import account_terms
from billing.services.funds.wallets import wallet_balances
from billing.services.invoicing.month_close import close_month
from tenants.services.rls import tenant_scope
from tests.billing.grants.grant_setup import create_grant
from tests.billing.histories import OPERATOR
from tests.simulation import NOW, Simulation, TenantContext

COIN = 36 * 10**9  # a cent, exact
WHY = "new here"


def make_prepaid(owner: TenantContext, *, now: datetime = NOW) -> None:
    set_payment_terms(owner, payment="prepaid", now=now)


def set_payment_terms(
    owner: TenantContext, *, payment: str = "invoice", account_status: str = "good", now: datetime = NOW
) -> None:
    with tenant_scope(owner.tenant.pk):
        account_terms.set_account_terms(
            owner.tenant, payment=payment, account_status=account_status, why=WHY, actor=OPERATOR, now=now
        )


def give_credit(owner: TenantContext, cents: int, *, now: datetime = NOW) -> Grant:
    """Give an unlimited grant that pays for everything."""
    return create_grant(owner.tenant, cents, now=now)


def available_cents(owner: TenantContext, now: datetime = NOW) -> int:
    """Return in cents what new leases may use."""
    with tenant_scope(owner.tenant.pk):
        return wallet_balances.wallet_funds(owner.tenant, now=now).available


def held_cents(owner: TenantContext) -> int:
    """Return in cents what leases hold, checked against the parts."""
    with tenant_scope(owner.tenant.pk):
        rows = [int(wallet.taken_num) for wallet in Wallet.objects.all()]
        assert sum(rows) == sum(int(part.num) for part in WalletPart.objects.all())
    return -(-sum(rows) // COIN)


def find_prepaid_hold(lease_id: str, owner: TenantContext) -> Hold:
    with tenant_scope(owner.tenant.pk):
        return Hold.objects.get(lease_id=lease_id)


def close_prepaid_month(owner: TenantContext, sim: Simulation, label: str = "2026-11") -> Invoice | None:
    return close_month.close_period(owner.tenant, label, now=sim.now)
