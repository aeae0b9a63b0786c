"""What a lease used beyond what was set aside for it is ours to pay: a slow stop never costs the tenant."""

from datetime import datetime

import structlog

from billing.domain.money import Money, exponent_of, to_minor_up
from billing.models import Grant
from billing.services.grants import giving
from billing.services.grants.giving import Terms
from broker.models import Lease
from tenants.services.actors import Actor

log = structlog.get_logger(__name__)
BILLING = Actor("system", "", "billing")
FIRST = 0  # before every other credit


def bear(lease: Lease, num: int, currency: str, *, month: int, now: datetime) -> None:
    """Give as credit what an exact amount, with tax, comes to at most: kept to where it was used, and drawn first.

    `num` is all that it used beyond its money in what is not invoiced yet, of which that month is the first; what was
    given of it already is not given again, however often somebody looks.
    """
    name = f"overrun {lease.pk} {month} "
    before = list(
        Grant.objects.filter(tenant=lease.tenant_id, idem__startswith=name).values_list("minor", flat=True)
    )
    minor = to_minor_up(num, exponent_of(currency)) - sum(before)
    if minor <= 0:
        return
    log.warning("a lease ran on without money", lease_id=lease.pk, amount=str(Money(minor, currency)))
    terms = Terms(
        minor=minor,
        reason=f"{lease.name[:60]} was ended late: what it used without money is ours to pay",
        project=lease.project,
        offering=lease.offering,
        priority=FIRST,
    )
    giving.give(lease.project.tenant, terms, idem=f"{name}{len(before) + 1}", actor=BILLING, now=now)
