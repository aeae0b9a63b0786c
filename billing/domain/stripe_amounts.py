"""Conversion between our minor units and the integers that Stripe uses for amounts.

They are mostly the same. Exceptions (docs.stripe.com/currencies): ISK and UGX have no decimals but are
sent as if they had two; currencies of three decimals are sent in thousandths that end in zero, so the
last digit is cut off. It is always cut and never rounded up: nobody is charged more than the invoice
says.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from billing.domain.money import EXPONENTS

_TWO = (
    "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BRL BSD BWP BYN BZD CAD CDF CHF CNY COP CRC"
    " CVE CZK DKK DOP DZD EGP ETB EUR FJD FKP GBP GEL GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR JMD KES KGS KHR KYD"
    " KZT LAK LBP LKR LRD LSL MAD MDL MKD MMK MNT MOP MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP"
    " PKR PLN QAR RON RSD RUB SAR SBD SCR SEK SGD SHP SLE SOS SRD STD SZL THB TJS TOP TRY TTD TWD TZS UAH USD UYU UZS"
    " WST XCD XCG YER ZAR ZMW"
)
_NONE = "BIF CLP DJF GNF JPY KMF KRW MGA PYG RWF VND VUV XAF XOF XPF"
_AS_IF_TWO = "ISK UGX"
_THREE = "BHD JOD KWD OMR TND"
# Decimals of Stripe's integers, for every currency that it takes.
DECIMALS: dict[str, int] = {
    **dict.fromkeys((_TWO + " " + _AS_IF_TWO).split(), 2),
    **dict.fromkeys(_NONE.split(), 0),
    **dict.fromkeys(_THREE.split(), 3),
}
LAST_DIGIT_ZERO = frozenset(_THREE.split())


class UnsupportedCurrency(ValueError):
    """Stripe does not take this currency, or its number of decimals is unknown."""


@dataclass(frozen=True, slots=True)
class StripeLine:
    """An invoice line as it is sent to Stripe: amount and tax in Stripe's integers."""

    minor: int
    tax: int


def to_stripe(minor: int, currency: str) -> int:
    """Convert minor units to Stripe's integer, or raise UnsupportedCurrency."""
    if currency not in DECIMALS:
        raise UnsupportedCurrency(f"Stripe does not collect {currency}.")
    if currency not in EXPONENTS:
        raise UnsupportedCurrency(f"How many decimals {currency} has is not listed here.")
    scale: int = 10 ** (DECIMALS[currency] - EXPONENTS[currency])
    return _drop_last_digit(minor * scale) if currency in LAST_DIGIT_ZERO else minor * scale


def from_stripe(amount: int, currency: str) -> int:
    """Convert Stripe's integer to minor units, dropping fractions of them."""
    if currency not in DECIMALS or currency not in EXPONENTS:
        raise UnsupportedCurrency(f"How many decimals {currency} has is not listed here.")
    scale: int = 10 ** (DECIMALS[currency] - EXPONENTS[currency])
    return amount // scale


def lines_to_stripe(amounts: Iterable[tuple[int, int]], currency: str) -> list[StripeLine]:
    """Convert lines of (amount, tax) so that they add up to Stripe's total."""
    parts, our_sum, sent = [], 0, 0
    for minor, tax in amounts:
        pair = []
        for each in (minor, tax):
            our_sum += each
            pair.append(to_stripe(our_sum, currency) - sent)
            sent += pair[-1]
        parts.append(StripeLine(*pair))
    return parts


def _drop_last_digit(amount: int) -> int:
    """Round towards zero to a multiple of ten."""
    whole = abs(amount) // 10 * 10
    return whole if amount >= 0 else -whole
