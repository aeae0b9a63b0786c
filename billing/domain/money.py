"""Exact integer money: rounded minor units, and the finer exact amounts behind them."""

import re
from dataclasses import dataclass

# A price is nano currency units per hour and usage is seconds, so every charge is a whole number of these.
MAX_MINOR = 10**15  # minor units; the remaining digits of an exact amount are headroom for sums
EXACT_PER_UNIT = 3600 * 10**9

# Decimal places of ISO 4217; two unless listed. A currency we do not list is refused, never guessed.
_TWO = (
    "AED AUD BRL CAD CHF CNY COP CZK DKK EGP EUR GBP GEL HKD HUF IDR ILS INR KES KZT MAD MXN MYR NGN NOK"
    " NZD PEN PHP PLN QAR RON RSD SAR SEK SGD THB TRY TWD TZS UAH USD UYU ZAR"
)
_NONE = "CLP ISK JPY KRW PYG RWF UGX VND VUV XAF XOF XPF"
_THREE = "BHD IQD JOD KWD LYD OMR TND"
EXPONENTS: dict[str, int] = {
    **dict.fromkeys(_TWO.split(), 2),
    **dict.fromkeys(_NONE.split(), 0),
    **dict.fromkeys(_THREE.split(), 3),
}
SYMBOLS = {"EUR": "€", "USD": "$", "GBP": "£", "JPY": "¥"}
MINUS = "\u2212"
AMOUNT_FORMAT = re.compile(r"(?P<whole>[0-9]{1,15})(?:\.(?P<parts>[0-9]{1,3}))?")
MAX_ECHO_LENGTH = 40


class InvalidAmount(ValueError):
    """The text is not a valid amount of its currency."""


class MixedCurrencies(ValueError):
    """Two amounts of different currencies were added or compared."""


def exponent_of(currency: str) -> int:
    """Return the number of decimals of a currency; raise ValueError if it is unknown."""
    try:
        return EXPONENTS[currency]
    except KeyError:
        raise ValueError(
            f"unknown currency {currency!r}: its number of decimals is not listed; add it to EXPONENTS first"
        ) from None


def half_up(numerator: int, denominator: int) -> int:
    """Round to the nearest integer, halves away from zero.

    A credit therefore mirrors its charge.
    """
    sign = -1 if (numerator < 0) != (denominator < 0) else 1
    top, bottom = abs(numerator), abs(denominator)
    return sign * ((2 * top + bottom) // (2 * bottom))


def to_minor(exact_num: int, exponent: int) -> int:
    """Round an exact amount once to minor units of a currency with that many decimals."""
    scale: int = 10**exponent
    return half_up(exact_num * scale, EXACT_PER_UNIT)


def to_minor_up(exact_num: int, exponent: int) -> int:
    """Round an exact amount up to minor units, as holds need it."""
    scale: int = 10**exponent
    return -(-exact_num * scale // EXACT_PER_UNIT)


@dataclass(frozen=True, slots=True)
class Money:
    """An amount in minor units of one currency; mixing currencies raises MixedCurrencies."""

    minor: int
    currency: str

    def __post_init__(self) -> None:
        exponent_of(self.currency)

    @classmethod
    def of_exact(cls, exact_num: int, currency: str) -> "Money":
        return cls(to_minor(exact_num, exponent_of(currency)), currency)

    def __add__(self, other: "Money") -> "Money":
        return Money(self.minor + self._same(other), self.currency)

    def __sub__(self, other: "Money") -> "Money":
        return Money(self.minor - self._same(other), self.currency)

    def __neg__(self) -> "Money":
        return Money(-self.minor, self.currency)

    def __lt__(self, other: "Money") -> bool:
        return self.minor < self._same(other)

    def __le__(self, other: "Money") -> bool:
        return self.minor <= self._same(other)

    def __gt__(self, other: "Money") -> bool:
        return self.minor > self._same(other)

    def __ge__(self, other: "Money") -> bool:
        return self.minor >= self._same(other)

    def __str__(self) -> str:
        return format_minor(self.minor, self.currency)

    def _same(self, other: "Money") -> int:
        if self.currency != other.currency:
            raise MixedCurrencies(f"{self.currency} and {other.currency} do not mix; convert in a report, never here")
        return other.minor


def format_fixed_point(value: int, decimals: int, *, places: int | None = None, thousands: str = "") -> str:
    """Write an integer that counts 10**-decimals as a decimal number, padded to `places`."""
    whole, rest = divmod(abs(value), 10**decimals)
    digits = str(rest).rjust(decimals, "0") if decimals else ""
    digits = digits.ljust(places or 0, "0")
    grouped = f"{whole:,}".replace(",", thousands)
    return ("-" if value < 0 else "") + grouped + (f".{digits}" if digits else "")


def parse_amount(text: str, currency: str) -> int:
    """Parse an amount such as `12.5` into minor units, or raise InvalidAmount."""
    places = exponent_of(currency)
    found = AMOUNT_FORMAT.fullmatch(text.strip())
    if found is None or len(found["parts"] or "") > places:
        decimals = f"at most {places} decimals" if places else "no decimals"
        raise InvalidAmount(
            f"{text.strip()[:MAX_ECHO_LENGTH]!r} is not an amount in {currency}: it has digits and {decimals}."
        )
    return int(found["whole"] + (found["parts"] or "").ljust(places, "0"))


def decimal_string(minor: int, currency: str) -> str:
    """Write an amount for the API: six decimals, no grouping, ASCII minus."""
    return format_fixed_point(minor, exponent_of(currency), places=6)


def format_minor(minor: int, currency: str) -> str:
    """Write an amount for people: €1,642.18, with a typographic minus sign."""
    sign = MINUS if minor < 0 else ""
    amount = format_fixed_point(abs(minor), exponent_of(currency), thousands=",")
    symbol = SYMBOLS.get(currency)
    return f"{sign}{symbol}{amount}" if symbol else f"{sign}{currency}\u00a0{amount}"
