"""Explanation of an invoice line from its inputs, in integers that customers can check."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from billing.domain.money import EXACT_PER_UNIT, SYMBOLS, Money, exponent_of, format_fixed_point
from billing.domain.periods import Period

MIN_DECIMALS = 6
# Nano units over 3600 need 13 decimals at most, unless they never end.
MAX_DECIMALS = 13


@dataclass(frozen=True, slots=True)
class UsagePiece:
    """One charge of a line: when it was used, and how many units."""

    span: Period
    quantity: int

    @property
    def unit_seconds(self) -> int:
        return self.span.seconds * self.quantity

    def __str__(self) -> str:
        used = f"{_format_utc(self.span.start)} to {_format_utc(self.span.end)}: {_with_commas(self.span.seconds)} s"
        return used if self.quantity == 1 else f"{used} × {self.quantity} = {_with_commas(self.unit_seconds)} s"


@dataclass(frozen=True, slots=True)
class LineExplanation:
    """How a line was computed: its usage intervals, one multiplication and one rounding."""

    pieces: tuple[UsagePiece, ...]
    unit_seconds: int
    exact_num: int
    amount: Money
    sum: str

    @property
    def steps(self) -> tuple[str, ...]:
        total = f"{len(self.pieces)} stretches of use together: {_with_commas(self.unit_seconds)} s"
        listed = tuple(str(piece) for piece in self.pieces)
        return (*listed, total, self.sum) if len(listed) > 1 else (*listed, self.sum)


def explain_line(pieces: Iterable[UsagePiece], *, nano_per_hour: int, currency: str) -> LineExplanation:
    """Explain how usage at one price became one invoice line."""
    listed = tuple(pieces)
    unit_seconds = sum(piece.unit_seconds for piece in listed)
    exact_num = unit_seconds * nano_per_hour
    return LineExplanation(
        pieces=listed,
        unit_seconds=unit_seconds,
        exact_num=exact_num,
        amount=Money.of_exact(exact_num, currency),
        sum=format_computation(unit_seconds, nano_per_hour=nano_per_hour, currency=currency),
    )


def format_computation(unit_seconds: int, *, nano_per_hour: int, currency: str) -> str:
    """Write the computation of a line, from unit-seconds to the rounded amount.

    2,676,186 s × 1.340000000 €/h ÷ 3600 s/h = 996.135900 € → 996.14 €.
    """
    unit = SYMBOLS.get(currency, currency)
    exact_num = unit_seconds * nano_per_hour
    minor = Money.of_exact(exact_num, currency).minor
    return (
        f"{_with_commas(unit_seconds)} s × {format_fixed_point(nano_per_hour, 9, thousands=',')} {unit}/h ÷ 3600 s/h"
        f" = {format_exact(exact_num)} {unit}"
        f" → {format_fixed_point(minor, exponent_of(currency), thousands=',')} {unit}"
    )


def format_exact(exact_num: int) -> str:
    """Write an exact amount with all its decimals, at least six.

    An amount with infinitely many decimals is cut and marked with an ellipsis. Cutting, unlike rounding,
    can never show a half that is not there, so the last step stays checkable.
    """
    scaled, rest = divmod(abs(exact_num) * 10**MAX_DECIMALS, EXACT_PER_UNIT)
    places = MIN_DECIMALS
    if not rest:
        while scaled % 10 ** (MAX_DECIMALS - places):
            places += 1
    cut = scaled // 10 ** (MAX_DECIMALS - places)
    text = format_fixed_point(-cut if exact_num < 0 else cut, places, thousands=",")
    return f"{text}…" if rest else text


def format_fraction(exact_num: int) -> str:
    """Write an exact amount as a fraction: 3,586,089,240,000,000 / 3,600,000,000,000."""
    return f"{_with_commas(exact_num)} / {_with_commas(EXACT_PER_UNIT)}"


def _with_commas(number: int) -> str:
    return f"{number:,}"


def _format_utc(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M:%S} UTC"
