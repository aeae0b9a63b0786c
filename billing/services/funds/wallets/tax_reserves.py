"""Reserve more tax at once when a prepaid tenant's tax details change.

Otherwise it would fall due when the month is closed, out of money that was promised to other leases
meanwhile, and we would bear it.
"""

from datetime import datetime
from decimal import Decimal

from billing.domain.money import Money, exponent_of, to_minor_up
from billing.domain.prepaid_holds import FULL_BP
from billing.domain.tax import TaxStatus
from billing.models import WalletPart
from billing.services.funds.wallets import wallet_balances
from billing.services.funds.wallets.reserved_tax_rate import max_tax_rate_bp
from tenants.models import Tenant
from tenants.services.errors import InvalidValue


def reserve_additional_tax(tenant: Tenant, before: TaxStatus, after: TaxStatus, *, now: datetime) -> None:
    """Reserve the additional tax on usage not invoiced yet, or raise InvalidValue.

    Where less is owed, each lease releases it at the next check. No month of the tenant may close
    meanwhile.
    """
    if before == after or not wallet_balances.is_prepaid(tenant.pk):
        return
    was, becomes = (FULL_BP + max_tax_rate_bp(tenant, status, on=now) for status in (before, after))
    if becomes <= was:
        return
    wallet = wallet_balances.lock_wallet(tenant)
    parts = list(WalletPart.objects.filter(wallet=wallet).order_by("pk"))
    taken = sum(int(part.num) for part in parts)
    for part in parts:
        part.num = Decimal(-(-int(part.num) * becomes // was))
    more = sum(int(part.num) for part in parts) - taken
    room = max(wallet_balances.wallet_room(wallet, until=now), 0)
    if more > room:
        lacks = Money(to_minor_up(more - room, exponent_of(wallet.currency)), wallet.currency)
        raise InvalidValue(
            "vat_id",
            f"This change increases the tax on usage that is not invoiced yet. The wallet lacks {lacks}.",
            fix="Top up the wallet first, then save again.",
        )
    WalletPart.objects.bulk_update(parts, ["num"], batch_size=1000)
