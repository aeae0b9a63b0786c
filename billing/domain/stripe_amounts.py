"""Amounts as Stripe writes them: mostly the smallest coin, as ours, and otherwise for a few currencies.

What Stripe counts otherwise (docs.stripe.com/currencies): ISK and UGX have no coins but are sent as if they had a
hundred; currencies of three decimals are sent in thousandths that end in a nought, so the last coin is left out.
It is always left out and never added: nobody is charged more than the invoice says.
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
# How many decimals Stripe's integers have, for every currency that it takes.
DECIMALS: dict[str, int] = {
    **dict.fromkeys((_TWO + " " + _AS_IF_TWO).split(), 2),
    **dict.fromkeys(_NONE.split(), 0),
    **dict.fromkeys(_THREE.split(), 3),
}
NO_LAST_COIN = frozenset(_THREE.split())


class NotCollected(ValueError):
    """Stripe does not take this currency, or we do not know how many decimals it has."""


@dataclass(frozen=True, slots=True)
class Part:
    """A line as Stripe is sent it: its amount, and the tax on it, in Stripe's integers."""

    minor: int
    tax: int


def of_minor(minor: int, currency: str) -> int:
    """Write our minor units as Stripe's integer, or raise NotCollected."""
    if currency not in DECIMALS:
        raise NotCollected(f"Stripe does not collect {currency}.")
    if currency not in EXPONENTS:
        raise NotCollected(f"How many decimals {currency} has is not listed here.")
    scale: int = 10 ** (DECIMALS[currency] - EXPONENTS[currency])
    return _without_last_coin(minor * scale) if currency in NO_LAST_COIN else minor * scale


def to_minor(amount: int, currency: str) -> int:
    """Read an integer of Stripe's as our minor units; what is no whole coin of ours is left out."""
    if currency not in DECIMALS or currency not in EXPONENTS:
        raise NotCollected(f"How many decimals {currency} has is not listed here.")
    scale: int = 10 ** (DECIMALS[currency] - EXPONENTS[currency])
    return amount // scale


def of_parts(amounts: Iterable[tuple[int, int]], currency: str) -> list[Part]:
    """Write lines, each an amount and its tax in minor units, so that they add up to their sum as Stripe has it."""
    parts, ours, sent = [], 0, 0
    for minor, tax in amounts:
        pair = []
        for each in (minor, tax):
            ours += each
            pair.append(of_minor(ours, currency) - sent)
            sent += pair[-1]
        parts.append(Part(*pair))
    return parts


def _without_last_coin(amount: int) -> int:
    """Round towards nothing to a whole ten."""
    whole = abs(amount) // 10 * 10
    return whole if amount >= 0 else -whole
