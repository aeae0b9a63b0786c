"""How much money a lease may still come to, month by month: what is set aside before it may queue.

Amounts are exact, over money.EXACT_PER_UNIT, so that what is set aside, captured and charged are the same numbers.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise

from billing.domain.money import EXACT_PER_UNIT, exponent_of
from billing.domain.periods import Period
from billing.domain.pricing import burn

# What waits may begin at any moment until it is looked at again; in which month its seconds fall depends on when.
LATEST_START = timedelta(minutes=15)
Priced = tuple[datetime, int]  # since when an hour costs so many nano


def exact_of(minor: int, currency: str) -> int:
    """Return an amount of minor units as an exact one."""
    exact: int = minor * EXACT_PER_UNIT // 10 ** exponent_of(currency)
    return exact


def spread(
    since: datetime, seconds: int, *, quantity: int, prices: Sequence[Priced], months: Mapping[int, Period]
) -> dict[int, int]:
    """Return by month the exact cost of so many seconds from a moment on.

    `prices` are in order of time. The first holds before it begins, too, and each until the next: where a price is
    missing, what could be charged there later is set aside.
    """
    if seconds <= 0:
        return {}
    run = Period(since, since + timedelta(seconds=seconds))
    found: dict[int, int] = {}
    for key, month in months.items():
        if (inside := run.intersect(month)) is not None:
            found[key] = sum(piece.seconds * burn(nano, quantity) for piece, nano in _priced(inside, prices))
    return found


def at_worst(
    now: datetime, seconds: int, *, quantity: int, prices: Sequence[Priced], months: Mapping[int, Period]
) -> dict[int, int]:
    """Return by month the most that so many seconds can cost there if they begin now or a little later.

    Where they begin just before a month's end, both months have what the other may be spared: it is given back once
    the moment is known.
    """
    starts = (now, now + LATEST_START)
    costs = [spread(at, seconds, quantity=quantity, prices=prices, months=months) for at in starts]
    return {key: max(cost.get(key, 0) for cost in costs) for key in costs[0].keys() | costs[1].keys()}


def together(*parts: Mapping[int, int]) -> dict[int, int]:
    """Add amounts up by month."""
    return {key: sum(part.get(key, 0) for part in parts) for part in parts for key in part}


def _priced(span: Period, prices: Sequence[Priced]) -> Iterable[tuple[Period, int]]:
    borders = [since for since, _ in prices[1:]]
    edges = [span.start, *(max(min(border, span.end), span.start) for border in borders), span.end]
    for (start, end), (_, nano) in zip(pairwise(edges), prices, strict=True):
        if start < end:
            yield Period(start, end), nano
