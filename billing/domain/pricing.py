"""What a price asks for: flat prices, as exact integers; and which price holds when."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TypeVar

from billing.domain.money import EXACT_PER_UNIT, exponent_of, to_minor, to_minor_up

T = TypeVar("T")
Held = tuple[datetime, datetime | None, T]  # something in force from a moment until another, or for good


def beside(listed: Iterable[Held[T]], own: Iterable[Held[T]]) -> list[Held[T]]:
    """Return what holds when: one's own wherever there is any, and the list's in all that is left beside; in order."""
    own = sorted(own, key=_since)
    found = [*own, *(piece for one in listed for piece in _left(one, own))]
    return sorted(found, key=_since)


def _left(one: Held[T], own: Iterable[Held[T]]) -> Iterator[Held[T]]:
    start, end, what = one
    for since, until, _ in own:
        if start < since and (end is None or start < end):
            yield start, since if end is None else min(since, end), what
        if until is None:
            return
        start = max(start, until)
    if end is None or start < end:
        yield start, end, what


def _since(one: Held[T]) -> datetime:
    return one[0]


def burn(nano_per_hour: int, quantity: int) -> int:
    """Return what a running lease costs, in nano currency units per hour."""
    _refuse_negative(nano_per_hour=nano_per_hour, quantity=quantity)
    return nano_per_hour * quantity


def cost(seconds: int, *, quantity: int, nano_per_hour: int) -> int:
    """Return the exact cost of use, in the units of money.EXACT_PER_UNIT."""
    _refuse_negative(seconds=seconds)
    return seconds * burn(nano_per_hour, quantity)


def at_most(seconds: int, *, quantity: int, nano_per_hour: int, currency: str) -> int:
    """Return the minor units that cover the use whatever rounding does: what a Hold sets aside."""
    exact = cost(seconds, quantity=quantity, nano_per_hour=nano_per_hour)
    return to_minor_up(exact, exponent_of(currency))


def cap(seconds: int, *, quantity: int, nano_per_hour: int, currency: str) -> int:
    """Return the minor units that the use comes to as a line of an invoice: rounded once, half up."""
    exact = cost(seconds, quantity=quantity, nano_per_hour=nano_per_hour)
    return to_minor(exact, exponent_of(currency))


def lasts(minor: int, *, quantity: int, nano_per_hour: int, currency: str) -> int | None:
    """Return for how many whole seconds an amount pays, or None when it pays for ever."""
    per_second = burn(nano_per_hour, quantity)
    if per_second == 0:
        return None
    exact: int = max(minor, 0) * EXACT_PER_UNIT // 10 ** exponent_of(currency)
    return exact // per_second


def _refuse_negative(**amounts: int) -> None:
    for name, amount in amounts.items():
        if amount < 0:
            raise ValueError(
                f"{name} is {amount}: a price is asked for nought or more, credits are adjustments"
            )
