"""Most that a lease can still cost, by month: the amount held before it queues."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise

from billing.domain.money import EXACT_PER_UNIT, exponent_of
from billing.domain.periods import Period
from billing.domain.pricing import hourly_cost

# A queued lease may start any time before its next check, and the month of its seconds depends on the start.
MAX_START_DELAY = timedelta(minutes=15)
PricePoint = tuple[datetime, int]  # (valid since, nano per hour)


def exact_from_minor(minor: int, currency: str) -> int:
    """Convert minor units to an exact amount."""
    exact: int = minor * EXACT_PER_UNIT // 10 ** exponent_of(currency)
    return exact


def most_seconds(duration_s: int, *, since: datetime, end_date: datetime | None) -> int:
    """Return the most seconds that a run can last from a moment.

    It ends after its duration, or at its end date.
    """
    if end_date is None:
        return max(duration_s, 0)
    return max(min(duration_s, -((since - end_date) // timedelta(seconds=1))), 0)


def cost_by_month(
    since: datetime, seconds: int, *, quantity: int, prices: Sequence[PricePoint], months: Mapping[int, Period]
) -> dict[int, int]:
    """Return by month the exact cost of this many seconds starting at a time.

    `prices` are in order of time. The first also applies before it begins, and each until the next:
    where a price is missing, what could be charged there later is held.
    """
    if seconds <= 0:
        return {}
    run = Period(since, since + timedelta(seconds=seconds))
    found: dict[int, int] = {}
    for key, month in months.items():
        if (inside := run.intersect(month)) is not None:
            found[key] = sum(
                piece.seconds * hourly_cost(nano, quantity) for piece, nano in _spans_by_price(inside, prices)
            )
    return found


def max_cost_by_month(
    now: datetime, seconds: int, *, quantity: int, prices: Sequence[PricePoint], months: Mapping[int, Period]
) -> dict[int, int]:
    """Return by month the most that a run can cost if it starts soon.

    It may start now or up to MAX_START_DELAY later. A run that starts just before a month's end is held
    for in both months; the surplus is released once the start is known.
    """
    starts = (now, now + MAX_START_DELAY)
    costs = [cost_by_month(at, seconds, quantity=quantity, prices=prices, months=months) for at in starts]
    return {key: max(cost.get(key, 0) for cost in costs) for key in costs[0].keys() | costs[1].keys()}


def sum_by_month(*parts: Mapping[int, int]) -> dict[int, int]:
    """Add amounts up by month."""
    return {key: sum(part.get(key, 0) for part in parts) for part in parts for key in part}


def _spans_by_price(span: Period, prices: Sequence[PricePoint]) -> Iterable[tuple[Period, int]]:
    boundaries = [since for since, _ in prices[1:]]
    edges = [span.start, *(max(min(boundary, span.end), span.start) for boundary in boundaries), span.end]
    for (start, end), (_, nano) in zip(pairwise(edges), prices, strict=True):
        if start < end:
            yield Period(start, end), nano
