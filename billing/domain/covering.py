"""How much of a wallet a lease takes: its cost with tax and with room for rounding, for a while ahead.

Amounts are exact, over money.EXACT_PER_UNIT.
"""

from collections.abc import Mapping
from datetime import timedelta

from billing.domain.money import EXACT_PER_UNIT, exponent_of

SLICE = timedelta(hours=1)  # what is covered ahead, while there is money for it
ENOUGH = timedelta(
    minutes=10
)  # less than this ahead, and the lease is ended: twice as long as looks are apart
WHOLE = 10_000  # basis points
ROUNDING = 2  # minor units by which a line and its tax may come to more than their exact amounts


def gross(num: int, *, rate_bp: int, pieces: int, currency: str) -> int:
    """Return what at most an invoice says for an exact cost that lies on so many of its lines; nothing of nothing."""
    if num <= 0:
        return 0
    coin: int = EXACT_PER_UNIT // 10 ** exponent_of(currency)
    taxed = -(-num * (WHOLE + rate_bp) // WHOLE)
    return -(-taxed // coin) * coin + ROUNDING * max(pieces, 1) * coin


def capped(parts: Mapping[int, int], most: int) -> dict[int, int]:
    """Take from the latest parts what they come to beyond `most`."""
    over, found = sum(parts.values()) - most, {}
    for key in sorted(parts, reverse=True):
        less = min(max(over, 0), parts[key])
        over -= less
        found[key] = parts[key] - less
    return found
