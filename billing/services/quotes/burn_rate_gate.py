"""Lease gate: refuse leases without a price or beyond a project's burn-rate quota."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from billing.services.catalogue.price_list import NoPrice
from billing.services.quotes import quote_redemption
from broker.models import Lease
from broker.services import quotas
from ports.postgres import sql_statements
from ports.postgres.sql_statements import load_sql
from tenants.models import QuotaKind


def gate(lease: Lease, *, now: datetime) -> Callable[[], None]:
    """Charge the lease's hourly price to every burn quota on its path, or raise Refused.

    A lease that cites a quote has the quote's price. An offering without a price is refused, because
    its usage could not be charged.
    """
    cited = quote_redemption.redeem_quote(lease, now=now) if lease.quote_token and not lease.quote_id else None
    values: dict[str, Any] = {
        "offering": lease.offering_id,
        "now": now,
        "path": lease.project.path,
        "tenant": lease.tenant_id,
        "quoted_lease": lease.pk if lease.quote_id else None,
    }
    cursor = sql_statements.prepared_cursor()
    cursor.execute(load_sql("billing/quotes/price_and_quota"), values)

    def check() -> None:
        with cursor:
            currency, nano_per_hour, limited = cursor.fetchone()
        if cited:
            cited(currency)
        if nano_per_hour is None:
            raise NoPrice(
                f"{lease.offering.label} has no price in {currency} now, so it cannot be charged.",
                fix="Ask the operator to publish a price, or choose another offering.",
            )
        burns = {QuotaKind.BURN: nano_per_hour * lease.quantity}
        if limited:
            quotas.take_quota(lease, burns, now=now)
        else:
            quotas.note_unlimited_use(lease, burns)

    return check
