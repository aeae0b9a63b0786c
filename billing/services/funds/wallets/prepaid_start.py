"""Switch to prepaid: reserve what the tenant used and was not invoiced for."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal

from django.db.models import CharField, Count, Q, Sum
from django.db.models.functions import Cast, Concat

from billing.domain.prepaid_holds import max_gross
from billing.models import BillingPeriod, RatedCharge, Wallet, WalletPart
from billing.models.periods import OPEN
from billing.services.funds.costs.hold_context import open_lease_hold
from billing.services.funds.costs.max_costs import NO_USAGE, LeaseUsage, lease_usages
from billing.services.funds.wallets import prepaid_holds, wallet_balances
from billing.services.funds.wallets.reserved_tax_rate import max_tax_rate_bp
from billing.services.periods import billing_periods
from billing.services.tax import tax_determination
from broker.models import Lease
from tenants.models import Tenant

LINE_KEY = Concat("project_id", Cast("price_version_id", CharField()))  # a version has one offering


def start_prepaid(tenant: Tenant, *, now: datetime) -> None:
    """Reserve what was used and is not invoiced, even without enough money.

    Nobody of the tenant takes money meanwhile. Running leases are covered from the next check on, or
    ended. A month that is being closed is waited for: what it charged is on its invoice then.
    """
    list(BillingPeriod.objects.select_for_update(no_key=True).filter(tenant=tenant, status=OPEN).order_by("span"))
    release_wallet(tenant)
    month = billing_periods.current_period(tenant, now=now)
    lately = Q(ended_at=None) | Q(ended_at__gte=month.span.lower)
    leases = Lease.objects.filter(lately, tenant=tenant).select_related("project__tenant", "offering").order_by("pk")
    known = {lease.pk: lease for lease in leases}
    used = lease_usages(known)
    living = [lease for key, lease in known.items() if _may_still_cost(lease, used.get(key, NO_USAGE))]
    _write_finished_leases(wallet_balances.lock_wallet(tenant), {lease.pk for lease in living}, now)
    for lease in living:
        prepaid_holds.reserve_past_use(open_lease_hold(lease, now=now), now=now)


def release_wallet(tenant: Tenant) -> None:
    """Release everything that a tenant's leases reserved in its wallet.

    The wallet is locked first, as when a month closes.
    """
    list(Wallet.objects.select_for_update(no_key=True).filter(tenant=tenant))
    WalletPart.objects.filter(tenant=tenant).delete()


def _may_still_cost(lease: Lease, use: LeaseUsage) -> bool:
    return lease.ended_at is None or use.uncharged > 0


def _write_finished_leases(wallet: Wallet, others: set[str], now: datetime) -> None:
    """Write the charges of finished leases in each open month, as one part."""
    rate_bp = max_tax_rate_bp(wallet.tenant, tax_determination.get_tax_status(wallet.tenant), on=now)
    open_ = BillingPeriod.objects.filter(tenant=wallet.tenant, status=OPEN).values_list("pk", flat=True)
    charges = RatedCharge.objects.filter(billed_period_id__in=list(open_)).exclude(lease_id__in=others)
    sums: Mapping[int, tuple[int, int]] = {
        period: (int(num), lines)
        for period, num, lines in charges.values_list("billed_period_id")
        .annotate(num=Sum("exact_num"), lines=Count(LINE_KEY, distinct=True))
        .order_by()
    }
    WalletPart.objects.bulk_create(
        WalletPart(
            tenant_id=wallet.tenant_id,
            wallet=wallet,
            period_id=period,
            num=Decimal(max_gross(num, rate_bp=rate_bp, pieces=lines, currency=wallet.currency)),
            spent_num=Decimal(num),
        )
        for period, (num, lines) in sums.items()
        if num > 0
    )
