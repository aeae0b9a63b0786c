"""Tenants that pay beforehand, in tests: their money, what of it is taken, and the months that draw on it."""

from datetime import datetime

from billing.models import Grant, Hold, Invoice, Wallet, WalletPart
from billing.services import closing
from billing.services.wallets import money, terms
from tenants.services.walls import as_tenant
from tests.billing.grants.gifts import give
from tests.billing.histories import OPERATOR
from tests.world import NOW, Home, Life

COIN = 36 * 10**9  # a cent, exact
WHY = "new here"


def prepaid(owner: Home, *, now: datetime = NOW) -> None:
    set_terms(owner, payment="prepaid", now=now)


def set_terms(owner: Home, *, payment: str = "invoice", standing: str = "good", now: datetime = NOW) -> None:
    with as_tenant(owner.tenant.pk):
        terms.set_terms(owner.tenant, payment=payment, standing=standing, why=WHY, actor=OPERATOR, now=now)


def credit(owner: Home, cents: int, *, now: datetime = NOW) -> Grant:
    """Give what counts like money: credit that pays for everything and never ends."""
    return give(owner.tenant, cents, now=now)


def available(owner: Home, now: datetime = NOW) -> int:
    """Return in cents what new leases may take."""
    with as_tenant(owner.tenant.pk):
        return money.funds(owner.tenant, now=now).available


def taken(owner: Home) -> int:
    """Return in cents, rounded up, what leases have set aside; it must be the sum of their parts."""
    with as_tenant(owner.tenant.pk):
        rows = [int(wallet.taken_num) for wallet in Wallet.objects.all()]
        assert sum(rows) == sum(int(part.num) for part in WalletPart.objects.all())
    return -(-sum(rows) // COIN)


def hold(lease_id: str, owner: Home) -> Hold:
    with as_tenant(owner.tenant.pk):
        return Hold.objects.get(lease_id=lease_id)


def closed(owner: Home, life: Life, label: str = "2026-11") -> Invoice | None:
    return closing.close_period(owner.tenant, label, now=life.now)
