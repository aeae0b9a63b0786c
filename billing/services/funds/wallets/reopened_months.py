"""Prepaid money of cancelled invoices, kept for those that replace them."""

from decimal import Decimal

from billing.domain.lease_holds import exact_from_minor
from billing.models import BillingPeriod, WalletPart
from billing.services.funds.wallets import wallet_balances
from tenants.models import Tenant


def keep_for_month(tenant: Tenant, month: BillingPeriod, minor: int) -> None:
    """Reserve an amount for the invoice of a month that was opened again.

    No lease may use it meanwhile; closing the month releases it.
    """
    wallet = wallet_balances.lock_wallet(tenant)
    num = Decimal(exact_from_minor(minor, wallet.currency))
    if num:
        WalletPart.objects.update_or_create(
            tenant=tenant, hold=None, period=month, defaults={"wallet": wallet, "num": num, "spent_num": num}
        )
