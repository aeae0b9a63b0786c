"""Whoever pays beforehand and says something of itself by which more tax is owed sets that tax aside at once.

Otherwise it would fall due when the month is closed, on money that others were let in on meanwhile, and be ours to pay.
"""

from datetime import datetime
from decimal import Decimal

from billing.domain.covering import WHOLE
from billing.domain.money import Money, exponent_of, to_minor_up
from billing.domain.tax import Standing
from billing.models import WalletPart
from billing.services.wallets import money
from billing.services.wallets.taxing import rate_of
from tenants.models import Tenant
from tenants.services.refusals import Invalid


def follow(tenant: Tenant, before: Standing, after: Standing, *, now: datetime) -> None:
    """Set aside what more tax is owed on what is not invoiced yet, or raise Invalid where there is no money for it.

    Where less is owed each lease sets it free at the next look. Needs that no month of the tenant closes meanwhile.
    """
    if before == after or not money.is_prepaid(tenant.pk):
        return
    was, becomes = (WHOLE + rate_of(tenant, standing, on=now) for standing in (before, after))
    if becomes <= was:
        return
    wallet = money.locked(tenant)
    parts = list(WalletPart.objects.filter(wallet=wallet).order_by("pk"))
    taken = sum(int(part.num) for part in parts)
    for part in parts:
        part.num = Decimal(-(-int(part.num) * becomes // was))
    more = sum(int(part.num) for part in parts) - taken
    room = max(money.room(wallet, until=now), 0)
    if more > room:
        lacks = Money(to_minor_up(more - room, exponent_of(wallet.currency)), wallet.currency)
        raise Invalid(
            "vat_id",
            f"More tax is owed so on what was used and is not invoiced yet: {lacks} of it are not in the wallet.",
            fix="Top the wallet up first; then save this again.",
        )
    WalletPart.objects.bulk_update(parts, ["num"], batch_size=1000)
