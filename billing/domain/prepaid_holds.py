"""Wallet amount that a lease reserves: its cost with tax and a rounding margin.

It covers a limited time ahead. Amounts are exact, over money.EXACT_PER_UNIT.
"""

from collections.abc import Mapping
from datetime import timedelta

from billing.domain.money import EXACT_PER_UNIT, exponent_of

COVER_AHEAD = timedelta(hours=1)  # how far ahead a lease is covered while there is money
MIN_COVER = timedelta(minutes=10)  # a lease covered for less is ended: twice the interval between two checks
FULL_BP = 10_000  # basis points
ROUNDING_MARGIN = 2  # minor units by which rounding may raise a line and its tax


def max_gross(num: int, *, rate_bp: int, pieces: int, currency: str) -> int:
    """Return the most that an invoice can charge for an exact cost, with tax.

    `pieces` is the number of invoice lines the cost can be spread over; each may round up. Zero costs
    zero.
    """
    if num <= 0:
        return 0
    minor_unit: int = EXACT_PER_UNIT // 10 ** exponent_of(currency)
    taxed = -(-num * (FULL_BP + rate_bp) // FULL_BP)
    return -(-taxed // minor_unit) * minor_unit + ROUNDING_MARGIN * max(pieces, 1) * minor_unit


def cap_amounts(parts: Mapping[int, int], most: int) -> dict[int, int]:
    """Reduce the amounts, latest key first, so that their sum is at most `most`."""
    over, found = sum(parts.values()) - most, {}
    for key in sorted(parts, reverse=True):
        less = min(max(over, 0), parts[key])
        over -= less
        found[key] = parts[key] - less
    return found
