"""Overruns: we credit what a lease used beyond its reserved money.

A slow stop never costs the tenant. The invoice decides how much it is: discounts may make it less
than was computed when the lease ended, or nothing. What is left of the credit expires with the
month in which it was given.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import structlog
from django.db.models import Sum

from billing.domain.grants import AvailableGrant, LinePart, allocate_grants
from billing.domain.money import EXACT_PER_UNIT, Money, exponent_of, to_minor_up
from billing.models import Grant, Invoice, WalletPart
from billing.services.funds.grants import new_grants
from billing.services.funds.grants.new_grants import GrantTerms
from billing.services.periods import billing_periods
from broker.models import Lease
from tenants.services.actors import BILLING

log = structlog.get_logger(__name__)
OVERRUN_PRIORITY = 0  # priority: drawn before every other credit
OVERRUN_PREFIX = "overrun "


def credit_overrun(lease: Lease, num: int, currency: str, *, month: int, now: datetime) -> None:
    """Grant credit for an unfunded amount, limited to where it was used, drawn first.

    `num` is exact and with tax: all that the lease used beyond its money and that is not invoiced yet,
    from `month` on. What was granted for it before is not granted again, however often this is called.
    """
    name = f"{OVERRUN_PREFIX}{lease.pk} {month} "
    before = list(Grant.objects.filter(tenant=lease.tenant_id, idem__startswith=name).values_list("minor", flat=True))
    minor = to_minor_up(num, exponent_of(currency)) - sum(before)
    if minor <= 0:
        return
    log.warning("lease ran without money", lease_id=lease.pk, amount=str(Money(minor, currency)))
    tenant = lease.project.tenant
    terms = GrantTerms(
        minor=minor,
        reason=f"{lease.name[:60]} was ended late; usage without money is credited",
        project=lease.project,
        offering=lease.offering,
        priority=OVERRUN_PRIORITY,
        expires_at=billing_periods.current_period(tenant, now=now).span.upper,
    )
    new_grants.give_grant(tenant, terms, idem=f"{name}{len(before) + 1}", actor=BILLING, now=now)


def limit_overrun_credit(
    credits: list[AvailableGrant], parts: Sequence[LinePart], invoice: Invoice
) -> list[AvailableGrant]:
    """Limit overrun credit on a draft to what its month's holds lack.

    Only the grants among `credits` are considered; two queries at most.
    """
    given = Grant.objects.filter(pk__in=[each.id for each in credits], idem__startswith=OVERRUN_PREFIX)
    overrun_grant_ids = set(given.values_list("pk", flat=True))
    if not overrun_grant_ids:
        return credits
    aside = WalletPart.objects.filter(period=invoice.period_id).aggregate(all=Sum("num"))["all"] or 0
    lacks = max(invoice.total - int(aside) * 10 ** exponent_of(invoice.currency) // EXACT_PER_UNIT, 0)
    pays = Counter[str]()
    for (grant, _), minor in allocate_grants((each for each in credits if each.id in overrun_grant_ids), parts).items():
        pays[grant] += minor
    found = [each for each in credits if each.id not in overrun_grant_ids]
    for each in sorted(
        (each for each in credits if each.id in overrun_grant_ids), key=lambda credit: credit.draw_order
    ):
        left = min(pays[each.id], lacks)
        lacks -= left
        if left:
            found.append(replace(each, left=left, priority=OVERRUN_PRIORITY - 1))
    return found
