"""Flat prices as exact integers, and which price applies when."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import TypeVar

from billing.domain.money import exponent_of, to_minor, to_minor_up

T = TypeVar("T")
InForce = tuple[datetime, datetime | None, T]  # (since, until or None for open, what is in force)


def merge_in_force(listed: Iterable[InForce[T]], own: Iterable[InForce[T]]) -> list[InForce[T]]:
    """Merge a tenant's own prices with the list's, in order of time.

    Own ones win wherever there are any; the list's fill the gaps.
    """
    own = sorted(own, key=_since)
    found = [*own, *(piece for one in listed for piece in _uncovered_parts(one, own))]
    return sorted(found, key=_since)


def _uncovered_parts(one: InForce[T], own: Iterable[InForce[T]]) -> Iterator[InForce[T]]:
    start, end, what = one
    for since, until, _ in own:
        if start < since and (end is None or start < end):
            yield start, since if end is None else min(since, end), what
        if until is None:
            return
        start = max(start, until)
    if end is None or start < end:
        yield start, end, what


def cap_prices(
    in_force: Iterable[InForce[T]], promised: T, nano_of: Callable[[T], int], *, since: datetime
) -> list[InForce[T]]:
    """Return the prices of a lease from a moment on, none above the promised one.

    The promised price replaces every dearer one, and applies wherever there is none.
    """
    found, at = list[InForce[T]](), since
    for start, end, what in sorted(in_force, key=_since):
        if end is not None and end <= since:
            continue
        if at < start:
            found.append((at, start, promised))
        found.append((max(start, since), end, what if nano_of(what) <= nano_of(promised) else promised))
        if end is None:
            return found
        at = end
    return [*found, (at, None, promised)]


def _since(one: InForce[T]) -> datetime:
    return one[0]


def hourly_cost(nano_per_hour: int, quantity: int) -> int:
    """Return the cost of a running lease in nano currency units per hour."""
    _refuse_negative(nano_per_hour=nano_per_hour, quantity=quantity)
    return nano_per_hour * quantity


def usage_cost(seconds: int, *, quantity: int, nano_per_hour: int) -> int:
    """Return the exact cost of usage, in the units of money.EXACT_PER_UNIT."""
    _refuse_negative(seconds=seconds)
    return seconds * hourly_cost(nano_per_hour, quantity)


def hold_amount(seconds: int, *, quantity: int, nano_per_hour: int, currency: str) -> int:
    """Return the cost in minor units, rounded up: the amount of a Hold."""
    exact = usage_cost(seconds, quantity=quantity, nano_per_hour=nano_per_hour)
    return to_minor_up(exact, exponent_of(currency))


def line_amount(seconds: int, *, quantity: int, nano_per_hour: int, currency: str) -> int:
    """Return the cost in minor units as on an invoice line: rounded once, half up."""
    exact = usage_cost(seconds, quantity=quantity, nano_per_hour=nano_per_hour)
    return to_minor(exact, exponent_of(currency))


def _refuse_negative(**amounts: int) -> None:
    for name, amount in amounts.items():
        if amount < 0:
            raise ValueError(f"{name} is {amount}: a price is asked for nought or more, credits are adjustments")
