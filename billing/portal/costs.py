"""What one lease cost, stretch by stretch: its transitions against the prices that were valid then."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise

from billing.domain.money import exponent_of, to_minor
from billing.domain.periods import Period
from billing.domain.pricing import cost
from billing.models import PriceVersion
from billing.services.prices import Price, in_force, priced
from broker.domain.lifecycle import BILLABLE
from broker.domain.states import EndReason, LeaseState
from broker.models import Transition


@dataclass(frozen=True)
class Stretch:
    """Time in one state at one price; what is not charged has no price."""

    start: datetime
    end: datetime
    state: LeaseState
    quantity: int = 1
    nano_per_hour: int | None = None
    currency: str = ""
    version: int | None = None
    open: bool = False
    given_back: bool = False  # it was taken back for others soon after its start

    @property
    def seconds(self) -> int:
        return int((self.end - self.start).total_seconds())

    @property
    def charged(self) -> bool:
        return self.nano_per_hour is not None and not self.given_back

    @property
    def burn(self) -> int:
        """What it costs per hour, all its slices together, in 10⁻⁹ units."""
        return self.quantity * (self.nano_per_hour or 0)

    @property
    def exact_num(self) -> int:
        if self.nano_per_hour is None or self.given_back:
            return 0
        return cost(self.seconds, quantity=self.quantity, nano_per_hour=self.nano_per_hour)

    @property
    def minor(self) -> int:
        return to_minor(self.exact_num, exponent_of(self.currency))


def stretches(
    steps: Iterable[Transition], *, tenant: str, currency: str, now: datetime, promised: Price | None = None
) -> list[Stretch]:
    """Return the life of one lease as stretches, the present one open until `now`; one query.

    `promised` is the price of the quote that it cites: then it has no other for what that is of.
    """
    life = sorted(steps, key=lambda step: step.seq)
    until = now.astimezone(UTC).replace(microsecond=0)
    ends = [later.at for _, later in pairwise(life)]
    if life and LeaseState(life[-1].after) not in (LeaseState.RELEASED, LeaseState.FAILED):
        ends.append(max(until, life[-1].at))
    prices = _prices(life, tenant, currency, promised) if life else []
    found: list[Stretch] = []
    for i, (step, end) in enumerate(zip(life, ends, strict=False)):
        if step.at < end:
            ran = _taken_after(life, i)
            found += _priced(step, end, prices, currency, open_=i == len(life) - 1, ran=ran)
    return found


def _taken_after(life: list[Transition], at: int) -> int | None:
    """Return for how many seconds the run that a step is in had lasted when it was taken back, or None."""
    last = next((step for step in life[at:] if LeaseState(step.after) not in BILLABLE), None)
    if last is None or last.reason != EndReason.PREEMPTED:
        return None
    rests = [n for n, step in enumerate(life[:at]) if LeaseState(step.after) not in BILLABLE]
    return int((last.at - life[rests[-1] + 1 if rests else 0].at).total_seconds())


def _prices(life: list[Transition], tenant: str, currency: str, promised: Price | None) -> list[Price]:
    always = [replace(promised, since=life[0].at, until=None)] if promised else []
    offerings = {step.offering_id for step in life} - {price.offering for price in always}
    rows = PriceVersion.objects.paid_by(tenant).filter(currency=currency, offering__in=offerings)
    known = defaultdict[str, list[Price]](list)
    for row in rows:
        known[row.offering_id].append(priced(row))
    return [*always, *(price for some in known.values() for price in in_force(some))]


def _priced(
    step: Transition, end: datetime, prices: list[Price], currency: str, *, open_: bool, ran: int | None
) -> Iterator[Stretch]:
    state = LeaseState(step.after)
    if state not in BILLABLE:
        yield Stretch(step.at, end, state, step.quantity, open=open_)
        return
    span = Period(step.at.astimezone(UTC), end.astimezone(UTC))
    for price in prices:
        if price.offering != step.offering_id:
            continue
        since = price.since.astimezone(UTC)
        until = price.until.astimezone(UTC) if price.until else span.end
        shared = span.intersect(Period(since, until)) if since < until else None
        if shared:
            yield Stretch(
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
