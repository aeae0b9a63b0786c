"""The oracle of rating: transitions, price versions and billing periods become exact charges.

The database does the same in one statement; whatever the two disagree on is a bug in one of them.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise

from billing.domain.periods import Period
from billing.domain.pricing import beside, cost
from broker.domain.lifecycle import BILLABLE
from broker.domain.states import LeaseState, PriceClass


@dataclass(frozen=True, slots=True)
class Step:
    """One transition of a lease, as far as money cares; its terms hold until the next one."""

    lease: str
    seq: int
    at: datetime
    after: LeaseState
    offering: str
    quantity: int
    price_class: PriceClass
    taken: bool = False  # it ended what ran: the provider took it back


@dataclass(frozen=True, slots=True)
class Price:
    """One price version: what an offering of a class costs while it is valid; an end of None is open."""

    version: str
    offering: str
    price_class: PriceClass
    start: datetime
    end: datetime | None
    nano_per_hour: int
    own: bool = False  # the tenant's own, which comes before the list's
    free_start_s: int = 0  # what is taken back before it ran so long costs nothing

    def valid(self, until: datetime) -> Period | None:
        """Return when it applies, looking no further than `until`."""
        end = until if self.end is None else min(self.end, until)
        return Period(self.start, end) if self.start < end else None


NONE: Mapping[str, Price] = {}


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch that is billed: the transition it began with, and until when its terms held."""

    opened: Step
    span: Period
    taken_after_s: int | None = None  # since its start, if it was taken back then


@dataclass(frozen=True, slots=True)
class Charge:
    """Use at one price in one billing period; its key is the intersection that it stands for."""

    lease: str
    seq: int
    version: str
    period: str
    span: Period
    unit_seconds: int
    exact_num: int
    given_back: bool = False  # then both are less than nought

    def back(self) -> "Charge":
        """Return what gives it back."""
        return replace(self, unit_seconds=-self.unit_seconds, exact_num=-self.exact_num, given_back=True)


@dataclass(frozen=True, slots=True)
class Unrated:
    """Billable seconds that no price version or no billing period covers: an error to mend, never free."""

    lease: str
    seq: int
    unit_seconds: int


@dataclass(frozen=True, slots=True)
class Rated:
    charges: tuple[Charge, ...]
    unrated: tuple[Unrated, ...]


def segments(steps: Iterable[Step]) -> Iterator[Segment]:
    """Yield the billable stretches between transitions, in the order of lease and seq.

    A stretch that is still open is left out: a tick closes it first, for a charge once written is final.
    """
    lives: defaultdict[str, list[Step]] = defaultdict(list)
    for step in steps:
        lives[step.lease].append(step)
    for _, life in sorted(lives.items()):
        life.sort(key=lambda step: step.seq)
        for opened, closed in pairwise(life):
            if closed.at < opened.at:
                raise ValueError(
                    f"transition {closed.seq} of {closed.lease} is earlier than the one before it"
                )
            if opened.after in BILLABLE and opened.at < closed.at:
                after = _taken_after(life, opened)
                yield Segment(opened, Period(opened.at, closed.at), after)


def _taken_after(life: list[Step], opened: Step) -> int | None:
    """Return for how many seconds the run that a step is in had lasted when it was taken back, or None."""
    at = next(n for n, step in enumerate(life) if step is opened)
    first = next(n for n in range(at, -1, -1) if n == 0 or life[n - 1].after not in BILLABLE)
    last = next((step for step in life[at:] if step.after not in BILLABLE), None)
    return Period(life[first].at, last.at).seconds if last and last.taken else None


def rate(
    steps: Iterable[Step],
    prices: Iterable[Price],
    periods: dict[str, Period],
    promised: Mapping[str, Price] = NONE,
) -> Rated:
    """Charge every billable second of every unit once, at the price of that second, in its period.

    A lease that was `promised` a price has that for all it uses of the offering, whenever the price was valid.
    """
    offered: defaultdict[tuple[str, PriceClass], list[Price]] = defaultdict(list)
    for price in prices:
        offered[price.offering, price.price_class].append(price)
    charges: list[Charge] = []
    unrated: list[Unrated] = []
    for segment in segments(steps):
        opened = segment.opened
        known = _course(offered[opened.offering, opened.price_class])
        if (kept := promised.get(opened.lease)) and kept.offering == opened.offering:
            known = [replace(kept, start=opened.at, end=None)]
        found = list(_charges(segment, known, periods))
        if segment.taken_after_s is not None:
            found += [charge.back() for charge in found if _is_free(charge, known, segment.taken_after_s)]
        missing = segment.span.seconds * opened.quantity - sum(
            charge.unit_seconds for charge in found if not charge.given_back
        )
        if missing < 0:
            raise ValueError(
                f"{opened.lease} has two prices or two billing periods at once in {segment.span}"
            )
        if missing:
            unrated.append(Unrated(opened.lease, opened.seq, missing))
        charges += found
    return Rated(tuple(sorted(charges, key=_key)), tuple(unrated))


def _is_free(charge: Charge, known: list[Price], taken_after_s: int) -> bool:
    return any(price.version == charge.version and taken_after_s < price.free_start_s for price in known)


def _course(prices: list[Price]) -> list[Price]:
    """Cut the list's prices by those that are the tenant's own, where there are any."""
    own = [(price.start, price.end, price) for price in prices if price.own]
    if not own:
        return prices
    listed = [(price.start, price.end, price) for price in prices if not price.own]
    return [replace(price, start=start, end=end) for start, end, price in beside(listed, own)]


def _charges(segment: Segment, prices: list[Price], periods: dict[str, Period]) -> Iterator[Charge]:
    opened = segment.opened
    for price in prices:
        valid = price.valid(segment.span.end)
        priced = valid and valid.intersect(segment.span)
        if not priced:
            continue
        for name, period in periods.items():
            if not (span := priced.intersect(period)):
                continue
            yield Charge(
                lease=opened.lease,
                seq=opened.seq,
                version=price.version,
                period=name,
                span=span,
                unit_seconds=span.seconds * opened.quantity,
                exact_num=cost(span.seconds, quantity=opened.quantity, nano_per_hour=price.nano_per_hour),
            )


def _key(charge: Charge) -> tuple[str, int, datetime, str, str, bool]:
    return charge.lease, charge.seq, charge.span.start, charge.version, charge.period, charge.given_back
