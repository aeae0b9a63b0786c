"""Reference implementation of rating: transitions, price versions and periods become exact charges.

The database does the same in one statement. Tests compare the two; any difference is a bug in one of
them.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise

from billing.domain.periods import Period
from billing.domain.pricing import cap_prices, merge_in_force, usage_cost
from broker.domain.lifecycle.lease_transitions import BILLABLE_STATES
from broker.domain.lifecycle.states import LeaseState, PriceClass


@dataclass(frozen=True, slots=True)
class RatedTransition:
    """One transition of a lease, reduced to what billing needs.

    Its terms hold until the next transition.
    """

    lease: str
    seq: int
    at: datetime
    after: LeaseState
    offering: str
    quantity: int
    price_class: PriceClass
    taken: bool = False  # it preempted the run


@dataclass(frozen=True, slots=True)
class RatedPrice:
    """One price version: the price of an offering and class while it is valid.

    An end of None is open.
    """

    version: str
    offering: str
    price_class: PriceClass
    start: datetime
    end: datetime | None
    nano_per_hour: int
    own: bool = False  # the tenant's own, which overrides the list's
    free_start_s: int = 0  # a run preempted within this time is free

    def valid(self, until: datetime) -> Period | None:
        """Return its validity cut off at `until`, or None."""
        end = until if self.end is None else min(self.end, until)
        return Period(self.start, end) if self.start < end else None


NO_QUOTES: Mapping[str, RatedPrice] = {}


@dataclass(frozen=True, slots=True)
class BillableInterval:
    """A billable interval: the transition that opened it, and how long its terms held."""

    opened: RatedTransition
    span: Period
    taken_after_s: int | None = None  # seconds since its start, if it was preempted


@dataclass(frozen=True, slots=True)
class ReferenceCharge:
    """Usage at one price in one billing period; its key identifies that intersection."""

    lease: str
    seq: int
    version: str
    period: str
    span: Period
    unit_seconds: int
    exact_num: int
    given_back: bool = False  # then both are negative

    def reversal(self) -> "ReferenceCharge":
        """Return the charge that cancels this one."""
        return replace(self, unit_seconds=-self.unit_seconds, exact_num=-self.exact_num, given_back=True)


@dataclass(frozen=True, slots=True)
class UnratedUsage:
    """Billable seconds without a price version or billing period: an error to fix, never free."""

    lease: str
    seq: int
    unit_seconds: int


@dataclass(frozen=True, slots=True)
class RatingResult:
    charges: tuple[ReferenceCharge, ...]
    unrated: tuple[UnratedUsage, ...]


def billable_intervals(steps: Iterable[RatedTransition]) -> Iterator[BillableInterval]:
    """Yield the billable intervals between transitions, ordered by lease and seq.

    An interval that is still open is left out: a tick closes it first, because a charge is final once
    written.
    """
    lives: defaultdict[str, list[RatedTransition]] = defaultdict(list)
    for step in steps:
        lives[step.lease].append(step)
    for _, life in sorted(lives.items()):
        life.sort(key=lambda step: step.seq)
        for opened, closed in pairwise(life):
            if closed.at < opened.at:
                raise ValueError(f"transition {closed.seq} of {closed.lease} is earlier than the one before it")
            if opened.after in BILLABLE_STATES and opened.at < closed.at:
                after = _preempted_after(life, opened)
                yield BillableInterval(opened, Period(opened.at, closed.at), after)


def _preempted_after(life: list[RatedTransition], opened: RatedTransition) -> int | None:
    """Return how many seconds a run lasted until it was preempted, or None."""
    at = next(n for n, step in enumerate(life) if step is opened)
    first = next(n for n in range(at, -1, -1) if n == 0 or life[n - 1].after not in BILLABLE_STATES)
    last = next((step for step in life[at:] if step.after not in BILLABLE_STATES), None)
    return Period(life[first].at, last.at).seconds if last and last.taken else None


def rate_usage(
    steps: Iterable[RatedTransition],
    prices: Iterable[RatedPrice],
    periods: dict[str, Period],
    promised: Mapping[str, RatedPrice] = NO_QUOTES,
    fixed: Mapping[str, RatedPrice] = NO_QUOTES,
) -> RatingResult:
    """Charge every billable unit-second once, at the price and in the period of that second.

    A lease in `promised` pays at most its quoted price for the offering, whenever that was valid; one in
    `fixed`, whose quote is older than ceilings, pays exactly that.
    """
    offered: defaultdict[tuple[str, PriceClass], list[RatedPrice]] = defaultdict(list)
    for price in prices:
        offered[price.offering, price.price_class].append(price)
    charges: list[ReferenceCharge] = []
    unrated: list[UnratedUsage] = []
    for segment in billable_intervals(steps):
        opened = segment.opened
        known = _prices_in_force(offered[opened.offering, opened.price_class])
        if (kept := fixed.get(opened.lease)) and kept.offering == opened.offering:
            known = [replace(kept, start=opened.at, end=None)]
        if (most := promised.get(opened.lease)) and most.offering == opened.offering:
            known = _cap(known, most, opened.at)
        found = list(_charges(segment, known, periods))
        if segment.taken_after_s is not None:
            found += [charge.reversal() for charge in found if _is_free(charge, known, segment.taken_after_s)]
        missing = segment.span.seconds * opened.quantity - sum(
            charge.unit_seconds for charge in found if not charge.given_back
        )
        if missing < 0:
            raise ValueError(f"{opened.lease} has two prices or two billing periods at once in {segment.span}")
        if missing:
            unrated.append(UnratedUsage(opened.lease, opened.seq, missing))
        charges += found
    return RatingResult(tuple(sorted(charges, key=_key)), tuple(unrated))


def _is_free(charge: ReferenceCharge, known: list[RatedPrice], taken_after_s: int) -> bool:
    return any(price.version == charge.version and taken_after_s < price.free_start_s for price in known)


def _prices_in_force(prices: list[RatedPrice]) -> list[RatedPrice]:
    """Cut the list's prices by the tenant's own, where there are any."""
    own = [(price.start, price.end, price) for price in prices if price.own]
    if not own:
        return prices
    listed = [(price.start, price.end, price) for price in prices if not price.own]
    return [replace(price, start=start, end=end) for start, end, price in merge_in_force(listed, own)]


def _cap(known: list[RatedPrice], most: RatedPrice, since: datetime) -> list[RatedPrice]:
    """Return the prices of a lease that cites a quote."""
    in_force = [(price.start, price.end, price) for price in known]
    capped = cap_prices(in_force, most, lambda price: price.nano_per_hour, since=since)
    return [replace(price, start=start, end=end) for start, end, price in capped]


def _charges(
    segment: BillableInterval, prices: list[RatedPrice], periods: dict[str, Period]
) -> Iterator[ReferenceCharge]:
    opened = segment.opened
    for price in prices:
        valid = price.valid(segment.span.end)
        priced = valid and valid.intersect(segment.span)
        if not priced:
            continue
        for name, period in periods.items():
            if not (span := priced.intersect(period)):
                continue
            yield ReferenceCharge(
                lease=opened.lease,
                seq=opened.seq,
                version=price.version,
                period=name,
                span=span,
                unit_seconds=span.seconds * opened.quantity,
                exact_num=usage_cost(span.seconds, quantity=opened.quantity, nano_per_hour=price.nano_per_hour),
            )


def _key(charge: ReferenceCharge) -> tuple[str, int, datetime, str, str, bool]:
    return charge.lease, charge.seq, charge.span.start, charge.version, charge.period, charge.given_back
