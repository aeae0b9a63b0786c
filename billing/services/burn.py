"""The lease gate of money: no lease without a price, and no project that burns more per hour than it may."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from billing.services import citing
from billing.services.prices import NoPrice
from broker.models import Lease
from broker.services import quotas
from ports import database
from tenants.models import QuotaKind

# The tenant's own price, where it has one, before the list's.
LISTED = """(SELECT v.nano_per_hour FROM billing_priceversion v
         WHERE (v.tenant_id IS NULL OR v.tenant_id = t.id) AND v.offering_id = %(offering)s
           AND v.currency = t.currency AND v.valid @> %(now)s::timestamptz
         ORDER BY v.tenant_id NULLS LAST LIMIT 1)"""
PROMISED = """coalesce((SELECT q.nano_per_hour FROM billing_quote q
         WHERE q.lease_id = %(lease)s AND q.offering_id = %(offering)s AND q.currency = t.currency), """
# One question on the request path: the price, and whether anybody on the path limits the burn at all.
ASK = """
SELECT t.currency, {price},
       EXISTS (SELECT FROM tenants_quota q WHERE q.kind = 'burn' AND q.project_id = ANY(%(path)s::text[]))
  FROM tenants_tenant t WHERE t.id = %(tenant)s
"""
BY_LIST, BY_PROMISE = ASK.format(price=LISTED), ASK.format(price=f"{PROMISED}{LISTED})")


def gate(lease: Lease, *, now: datetime) -> Callable[[], None]:
    """Take the lease's price per hour from every burn quota on its project's path, or raise Refused.

    It is the price of the quote that it cites, if it does. An offering without a price is refused here: seconds that
    cannot be charged must not come about.
    """
    cited = citing.cite(lease, now=now) if lease.cites and not lease.quote_id else None
    asked: dict[str, Any] = {
        "offering": lease.offering_id,
        "now": now,
        "path": lease.project.path,
        "tenant": lease.tenant_id,
    }
    if lease.quote_id:
        asked["lease"] = lease.pk
    cursor = database.prepared()
    cursor.execute(BY_PROMISE if lease.quote_id else BY_LIST, asked)

    def judge() -> None:
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
            quotas.take(lease, burns, now=now)
        else:
            quotas.note(lease, burns)

    return judge
