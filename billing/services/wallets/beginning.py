"""A tenant that pays beforehand from now on begins with what it used already and has no final invoice of yet."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal

from django.db.models import CharField, Count, Q, Sum
from django.db.models.functions import Cast, Concat

from billing.domain.covering import gross
from billing.models import BillingPeriod, RatedCharge, Wallet, WalletPart
from billing.models.periods import OPEN
from billing.services import periods
from billing.services.funds.looking import look_at
from billing.services.funds.needs import NO_USE, Use, uses
from billing.services.tax import standings
from billing.services.wallets import covering, money
from billing.services.wallets.taxing import rate_of
from broker.models import Lease
from tenants.models import Tenant

LINE = Concat("project_id", Cast("price_version_id", CharField()))  # an offering has its own price versions


def count(tenant: Tenant, *, now: datetime) -> None:
    """Take what was used and is not invoiced, whether there is money for it or not; nobody takes any meanwhile.

    What runs is covered from the next look on, or ended. A month that is being closed is waited for: what it charged is
    on its invoice then.
    """
    list(
        BillingPeriod.objects.select_for_update(no_key=True)
        .filter(tenant=tenant, status=OPEN)
        .order_by("span")
    )
    clear(tenant)
    month = periods.current(tenant, now=now)
    lately = Q(ended_at=None) | Q(ended_at__gte=month.span.lower)
    leases = (
        Lease.objects.filter(lately, tenant=tenant)
        .select_related("project__tenant", "offering")
        .order_by("pk")
    )
    known = {lease.pk: lease for lease in leases}
    used = uses(known)
    living = [lease for key, lease in known.items() if _may_cost(lease, used.get(key, NO_USE))]
    _write(money.locked(tenant), {lease.pk for lease in living}, now)
    for lease in living:
        covering.begin(look_at(lease, now=now), now=now)


def clear(tenant: Tenant) -> None:
    """Set free all that leases of a tenant have of its wallet; the wallet first, as whoever closes a month locks it."""
    list(Wallet.objects.select_for_update(no_key=True).filter(tenant=tenant))
    WalletPart.objects.filter(tenant=tenant).delete()


def _may_cost(lease: Lease, use: Use) -> bool:
    return lease.ended_at is None or use.uncharged > 0


def _write(wallet: Wallet, others: set[str], now: datetime) -> None:
    """Write what leases that cost nothing any more were charged in each open month, as a part of none of them."""
    rate_bp = rate_of(wallet.tenant, standings.standing(wallet.tenant), on=now)
    open_ = BillingPeriod.objects.filter(tenant=wallet.tenant, status=OPEN).values_list("pk", flat=True)
    charges = RatedCharge.objects.filter(billed_period_id__in=list(open_)).exclude(lease_id__in=others)
    sums: Mapping[int, tuple[int, int]] = {
        period: (int(num), lines)
        for period, num, lines in charges.values_list("billed_period_id")
        .annotate(num=Sum("exact_num"), lines=Count(LINE, distinct=True))
        .order_by()
    }
    WalletPart.objects.bulk_create(
        WalletPart(
            tenant_id=wallet.tenant_id,
            wallet=wallet,
            period_id=period,
            num=Decimal(gross(num, rate_bp=rate_bp, pieces=lines, currency=wallet.currency)),
            spent_num=Decimal(num),
        )
        for period, (num, lines) in sums.items()
        if num > 0
    )
