"""What money and credit a tenant has for what it has not paid yet, and what of that is spoken for."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from billing.domain.holding import exact_of
from billing.domain.money import exponent_of, to_minor_up
from billing.models import BillingPeriod, Grant, PaymentTerms, TenantTerms, Wallet
from billing.models.periods import OPEN
from billing.services.grants import purse
from billing.services.ledger import books
from tenants.models import Tenant


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
    rows = Wallet.objects.select_for_update(no_key=True)
    found = rows.filter(tenant=tenant).first()
    if found is None:
        Wallet.objects.bulk_create([Wallet(tenant=tenant, currency=tenant.currency)], ignore_conflicts=True)
        found = rows.get(tenant=tenant)
    return found


def room(wallet: Wallet, *, until: datetime) -> int:
    """Return what may still be taken of a locked wallet for use up to a moment; exact, below nothing if overdrawn."""
    paid = books.balance(wallet.tenant_id, wallet.currency)
    minor = paid + counted(wallet.tenant_id, wallet.currency, until=until)
    return exact_of(minor, wallet.currency) - int(wallet.taken_num)


def counted(tenant_id: str, currency: str, *, until: datetime) -> int:
    """Return the credit that something used up to a moment may be let in on; minor units, three queries at most.

    Only what pays for everything: what is kept to a project or an offering pays there too, but nothing is let in on it.
    And only what does not end before, or within the month whose invoice is next: what of it pays for use that is over
    nobody knows before that is final.
    """
    rest = purse.left(tenant_id)
    if not rest:
        return 0
    spans = (
        BillingPeriod.objects.filter(tenant=tenant_id, status=OPEN)
        .order_by("span")
        .values_list("span", flat=True)
    )
    next_ = spans.first()
    lasting = Q(expires_at=None) | Q(expires_at__gt=until, expires_at__gte=next_.upper if next_ else until)
    wide = Grant.objects.filter(
        lasting, tenant_id=tenant_id, pk__in=rest, currency=currency, project=None, offering=None, lapse=None
    )
    return sum(rest[key] for key in wide.values_list("pk", flat=True))


def funds(tenant: Tenant, *, now: datetime) -> Funds:
    """Return what a tenant has, as its pages say; five queries at most."""
    wallet = Wallet.objects.filter(tenant=tenant).first()
    places = exponent_of(tenant.currency)
    return Funds(
        paid=books.balance(tenant.pk, tenant.currency),
        credit=counted(tenant.pk, tenant.currency, until=now),
        taken=to_minor_up(int(wallet.taken_num), places) if wallet else 0,
        currency=tenant.currency,
    )
