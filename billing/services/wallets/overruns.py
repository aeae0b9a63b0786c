"""What a lease used beyond what was set aside for it is ours to pay: a slow stop never costs the tenant.

How much that is, its invoice says: discounts may make it less than was reckoned when it ended, or nothing. What is left
then is nobody's; it ends with the month in which it was given.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import structlog
from django.db.models import Sum

from billing.domain.granting import Credit, Part, drawn
from billing.domain.money import EXACT_PER_UNIT, Money, exponent_of, to_minor_up
from billing.models import Grant, Invoice, WalletPart
from billing.services import periods
from billing.services.grants import giving
from billing.services.grants.giving import Terms
from broker.models import Lease
from tenants.services.actors import Actor

log = structlog.get_logger(__name__)
BILLING = Actor("system", "", "billing")
FIRST = 0  # before every other credit
OVERRUN = "overrun "


def bear(lease: Lease, num: int, currency: str, *, month: int, now: datetime) -> None:
    """Give as credit what an exact amount, with tax, comes to at most: kept to where it was used, and drawn first.

    `num` is all that it used beyond its money in what is not invoiced yet, of which that month is the first; what was
    given of it already is not given again, however often somebody looks.
    """
    name = f"{OVERRUN}{lease.pk} {month} "
    before = list(
        Grant.objects.filter(tenant=lease.tenant_id, idem__startswith=name).values_list("minor", flat=True)
    )
    minor = to_minor_up(num, exponent_of(currency)) - sum(before)
    if minor <= 0:
        return
    log.warning("a lease ran on without money", lease_id=lease.pk, amount=str(Money(minor, currency)))
    tenant = lease.project.tenant
    terms = Terms(
        minor=minor,
        reason=f"{lease.name[:60]} was ended late: what it used without money is ours to pay",
        project=lease.project,
        offering=lease.offering,
        priority=FIRST,
        expires_at=periods.current(tenant, now=now).span.upper,
    )
    giving.give(tenant, terms, idem=f"{name}{len(before) + 1}", actor=BILLING, now=now)


def limited(credits: list[Credit], parts: Sequence[Part], invoice: Invoice) -> list[Credit]:
    """Let what we bear pay no more of a draft that becomes final than the money set aside for its month lacks of it.

    Only what stands among `credits` is looked at; two queries at most.
    """
    given = Grant.objects.filter(pk__in=[each.id for each in credits], idem__startswith=OVERRUN)
    ours = set(given.values_list("pk", flat=True))
    if not ours:
        return credits
    aside = WalletPart.objects.filter(period=invoice.period_id).aggregate(all=Sum("num"))["all"] or 0
    lacks = max(invoice.total - int(aside) * 10 ** exponent_of(invoice.currency) // EXACT_PER_UNIT, 0)
    pays = Counter[str]()
    for (grant, _), minor in drawn((each for each in credits if each.id in ours), parts).items():
        pays[grant] += minor
    found = [each for each in credits if each.id not in ours]
    for each in sorted((each for each in credits if each.id in ours), key=lambda credit: credit.order):
        left = min(pays[each.id], lacks)
        lacks -= left
        if left:
            found.append(replace(each, left=left, priority=FIRST - 1))
    return found
