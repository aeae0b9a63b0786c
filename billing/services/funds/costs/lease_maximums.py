"""Maximum cost of a lease, or of a request for one.

Pages, quotes and e-mails take it from here, so that it is the same everywhere.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from billing.domain import lease_holds
from billing.domain.money import Money, exponent_of, to_minor_up
from billing.domain.periods import Period
from billing.domain.pricing import hold_amount
from billing.services.catalogue import price_list
from billing.services.catalogue.price_list import OfferingPrice
from billing.services.funds.costs.max_costs import NO_USAGE, LeaseUsage, MaxCost, lease_usages
from billing.services.rating import spend
from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease
from tenants.models import Tenant

OVER = {LeaseState.RELEASING, LeaseState.RELEASED, LeaseState.FAILED}
WHOLE_LIFE = 0  # the only month of a lease's whole life


class RunTerms(Protocol):
    """When a run begins and ends at the latest.

    Of a request, or of a lease that was not active yet.
    """

    @property
    def quantity(self) -> int: ...

    @property
    def max_duration_s(self) -> int: ...

    @property
    def starts_at(self) -> datetime | None: ...

    @property
    def end_date(self) -> datetime | None: ...


def request_maximum(wanted: RunTerms, *, nano_per_hour: int, currency: str, now: datetime) -> Money:
    """Return the most that a request costs at one price.

    Rounded up, as it is held.
    """
    since = max(now, wanted.starts_at or now).replace(microsecond=0)
    seconds = lease_holds.most_seconds(wanted.max_duration_s, since=since, end_date=wanted.end_date)
    minor = hold_amount(seconds, quantity=wanted.quantity, nano_per_hour=nano_per_hour, currency=currency)
    return Money(minor, currency)


def lease_maximum(lease: Lease, *, tenant: Tenant, now: datetime) -> Money | None:
    """Return the most that a lease costs in all.

    What it cost so far, and what it may still cost.

    That of an ended lease is its cost. None without a price.
    """
    if lease.state in OVER:
        cost = spend.costs_of([lease.pk], now=now).get(lease.pk)
        return Money(cost.minor if cost else 0, tenant.currency)
    found = _LifeCost(tenant, [lease])
    if not found.has_price(lease):
        return None
    use = lease_usages([lease.pk]).get(lease.pk, NO_USAGE)
    whole = LeaseUsage(use.used, use.charged, {WHOLE_LIFE: sum(use.by_month.values())})
    exact = sum(found.needed(lease, whole, now=now).values())
    return Money(to_minor_up(exact, exponent_of(tenant.currency)), tenant.currency)


def more_maximum(lease: Lease, seconds: int, *, currency: str, now: datetime) -> Money | None:
    """Return the most that further seconds of a lease cost.

    None without a price.
    """
    price = lease_price(lease, currency=currency, now=now)
    if price is None:
        return None
    minor = hold_amount(seconds, quantity=lease.quantity, nano_per_hour=price.nano_per_hour, currency=currency)
    return Money(minor, currency)


def lease_price(lease: Lease, *, currency: str, now: datetime) -> OfferingPrice | None:
    """Return the most that a lease pays per hour.

    Its quote's price, or the present one.
    """
    if quoted := price_list.quoted_prices([lease]).get(lease.pk):
        return quoted
    known = price_list.prices_at(now, currency=currency, offerings={lease.offering_id}, tenant=lease.tenant_id)
    return known.get(lease.offering_id)


class _LifeCost(MaxCost):
    """The maximum cost over a lease's whole life, which is one month; reads no months."""

    def has_price(self, lease: Lease) -> bool:
        return lease.pk in self._promised or bool(self.price_points(lease))

    def _between(self, since: datetime, until: datetime) -> Sequence[tuple[int, Period]]:
        return [(WHOLE_LIFE, Period(since, until))]
