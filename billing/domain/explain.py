"""From the inputs of an invoice line to words by which a customer can check it, in integers throughout."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from billing.domain.money import EXACT_PER_UNIT, SYMBOLS, Money, exponent_of, fixed_point
from billing.domain.periods import Period

LEAST_PLACES = 6
# Nano units over 3600 need 13 decimals at most, unless they never end.
MOST_PLACES = 13


@dataclass(frozen=True, slots=True)
class Piece:
    """One charge behind a line: when it was used, and how many units of it."""

    span: Period
    quantity: int

    @property
    def unit_seconds(self) -> int:
        return self.span.seconds * self.quantity

    def __str__(self) -> str:
        used = f"{_moment(self.span.start)} to {_moment(self.span.end)}: {_grouped(self.span.seconds)} s"
        return used if self.quantity == 1 else f"{used} × {self.quantity} = {_grouped(self.unit_seconds)} s"


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a line came about: its pieces of use, the one multiplication and the one rounding."""

    pieces: tuple[Piece, ...]
    unit_seconds: int
    exact_num: int
    amount: Money
    sum: str

    @property
    def steps(self) -> tuple[str, ...]:
        total = f"{len(self.pieces)} stretches of use together: {_grouped(self.unit_seconds)} s"
        listed = tuple(str(piece) for piece in self.pieces)
        return (*listed, total, self.sum) if len(listed) > 1 else (*listed, self.sum)


def explain(pieces: Iterable[Piece], *, nano_per_hour: int, currency: str) -> Explanation:
    """Tell how pieces of use at one price became one line."""
    listed = tuple(pieces)
    unit_seconds = sum(piece.unit_seconds for piece in listed)
    exact_num = unit_seconds * nano_per_hour
    return Explanation(
        pieces=listed,
        unit_seconds=unit_seconds,
        exact_num=exact_num,
        amount=Money.of_exact(exact_num, currency),
        sum=priced(unit_seconds, nano_per_hour=nano_per_hour, currency=currency),
    )


def priced(unit_seconds: int, *, nano_per_hour: int, currency: str) -> str:
    """Write the sum of a line: 2,676,186 s × 1.340000000 €/h ÷ 3600 s/h = 996.135900 € → 996.14 €."""
    unit = SYMBOLS.get(currency, currency)
    exact_num = unit_seconds * nano_per_hour
    minor = Money.of_exact(exact_num, currency).minor
    return (
        f"{_grouped(unit_seconds)} s × {fixed_point(nano_per_hour, 9, thousands=',')} {unit}/h ÷ 3600 s/h"
        f" = {exactly(exact_num)} {unit} → {fixed_point(minor, exponent_of(currency), thousands=',')} {unit}"
    )


def exactly(exact_num: int) -> str:
    """Write an exact amount with all its decimals, at least six; one that never ends is cut and marked so.

    Cutting, unlike rounding, can never show a half that is not there, so the last step stays checkable.
    """
    scaled, rest = divmod(abs(exact_num) * 10**MOST_PLACES, EXACT_PER_UNIT)
    places = LEAST_PLACES
    if not rest:
        while scaled % 10 ** (MOST_PLACES - places):
            places += 1
    cut = scaled // 10 ** (MOST_PLACES - places)
    text = fixed_point(-cut if exact_num < 0 else cut, places, thousands=",")
    return f"{text}…" if rest else text


def fraction(exact_num: int) -> str:
    """Write an exact amount as the fraction that it is: 3,586,089,240,000,000 / 3,600,000,000,000."""
    return f"{_grouped(exact_num)} / {_grouped(EXACT_PER_UNIT)}"


def _grouped(number: int) -> str:
    return f"{number:,}"


def _moment(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M:%S} UTC"
