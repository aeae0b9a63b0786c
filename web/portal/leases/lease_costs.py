"""Cost of one lease, interval by interval, at the prices in force then."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

from billing.domain.money import exponent_of, to_minor
from billing.domain.periods import Period
from billing.domain.pricing import usage_cost
from billing.models import PriceVersion
from billing.services.catalogue.price_list import OfferingPrice, prices_paid, to_price
from broker.domain.lifecycle.lease_transitions import BILLABLE_STATES
from broker.domain.lifecycle.states import EndReason, LeaseState
from broker.models import Transition


@dataclass(frozen=True)
class CostInterval:
    """Time in one state at one price; an uncharged interval has no price."""

    start: datetime
    end: datetime
    state: LeaseState
    quantity: int = 1
    nano_per_hour: int | None = None
    currency: str = ""
    version: int | None = None
    open: bool = False
    given_back: bool = False  # preempted soon after its start, so not charged

    @property
    def seconds(self) -> int:
        return int((self.end - self.start).total_seconds())

    @property
    def charged(self) -> bool:
        return self.nano_per_hour is not None and not self.given_back

    @property
    def total_nano_per_hour(self) -> int:
        """Return what all its slices cost per hour, in 10⁻⁹ currency units."""
        return self.quantity * (self.nano_per_hour or 0)

    @property
    def exact_num(self) -> int:
        if self.nano_per_hour is None or self.given_back:
            return 0
        return usage_cost(self.seconds, quantity=self.quantity, nano_per_hour=self.nano_per_hour)

    @property
    def minor(self) -> int:
        return to_minor(self.exact_num, exponent_of(self.currency))


def cost_intervals(
    steps: Iterable[Transition], *, tenant: str, currency: str, now: datetime, quoted_price: OfferingPrice | None = None
) -> list[CostInterval]:
    """Return the priced intervals of one lease, the current one open until `now`; one query.

    `quoted_price` is that of the quote that the lease redeemed, the most that it pays for that offering.
    """
    life = sorted(steps, key=lambda step: step.seq)
    until = now.astimezone(UTC).replace(microsecond=0)
    ends = [later.at for _, later in pairwise(life)]
    if life and LeaseState(life[-1].after) not in (LeaseState.RELEASED, LeaseState.FAILED):
        ends.append(max(until, life[-1].at))
    prices = _lease_prices(life, tenant, currency, quoted_price) if life else []
    found: list[CostInterval] = []
    for i, (step, end) in enumerate(zip(life, ends, strict=False)):
        if step.at < end:
            ran = _seconds_until_preemption(life, i)
            found += _price_interval(step, end, prices, currency, open_=i == len(life) - 1, ran=ran)
    return found


def _seconds_until_preemption(life: list[Transition], at: int) -> int | None:
    """Return how many seconds a run had lasted when it was preempted, or None."""
    last = next((step for step in life[at:] if LeaseState(step.after) not in BILLABLE_STATES), None)
    if last is None or last.reason != EndReason.PREEMPTED:
        return None
    rests = [n for n, step in enumerate(life[:at]) if LeaseState(step.after) not in BILLABLE_STATES]
    return int((last.at - life[rests[-1] + 1 if rests else 0].at).total_seconds())


def _lease_prices(
    life: list[Transition], tenant: str, currency: str, quoted_price: OfferingPrice | None
) -> list[OfferingPrice]:
    offerings = {step.offering_id for step in life}
    rows = PriceVersion.objects.paid_by(tenant).filter(currency=currency, offering__in=offerings)
    known = defaultdict[str, list[OfferingPrice]](list)
    for row in rows:
        known[row.offering_id].append(to_price(row))
    return [
        price
        for offering in sorted(offerings)
        for price in prices_paid(
            known[offering],
            quoted_price if quoted_price and quoted_price.offering == offering else None,
            since=life[0].at,
        )
    ]


def _price_interval(
    step: Transition, end: datetime, prices: list[OfferingPrice], currency: str, *, open_: bool, ran: int | None
) -> Iterator[CostInterval]:
    state = LeaseState(step.after)
    if state not in BILLABLE_STATES:
        yield CostInterval(step.at, end, state, step.quantity, open=open_)
        return
    span = Period(step.at.astimezone(UTC), end.astimezone(UTC))
    for price in prices:
        if price.offering != step.offering_id:
            continue
        since = price.since.astimezone(UTC)
        until = price.until.astimezone(UTC) if price.until else span.end
        shared = span.intersect(Period(since, until)) if since < until else None
        if shared:
            yield CostInterval(
                shared.start,
                shared.end,
                state,
                step.quantity,
                price.nano_per_hour,
                currency,
                price.version,
                open=open_ and shared.end == span.end,
                given_back=ran is not None and ran < price.free_start_s,
            )
